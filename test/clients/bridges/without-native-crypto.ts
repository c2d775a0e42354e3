/**
 * Provides matrix-bot-sdk with its cryptography without a download: its native library is fetched by an install script, which npm does
 * not run here. WebAssembly of the same Rust code takes its place. Must be imported before matrix-bot-sdk.
 */
import { registerHooks } from 'node:module';

const native = '@matrix-org/matrix-sdk-crypto-nodejs';
const replacement = new URL('./olm-machine.ts', import.meta.url).href;

registerHooks({
  resolve: (specifier, context, nextResolve) =>
    specifier === native ? { url: replacement, shortCircuit: true } : nextResolve(specifier, context),
});
