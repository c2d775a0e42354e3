/** Signing on another thread. */
export { BackgroundSigner } from './background-signer.ts';
