/**
 * Compares signatures by libsodium and by the platform (OpenSSL), in alternating rounds: `node
 * bench/signing/main.ts`. Prints microseconds of CPU time per signature, the best of the rounds.
 */
import { generateKeyPairSync } from 'node:crypto';
import {
  loadedSodium,
  type SignText,
  signingByPlatform,
  signingBySodium,
} from '../../src/kernel/signing/sign-text.ts';

/** Number of rounds of each implementation. */
const rounds = 7;

/** Number of signatures in a round. */
const signatures = 2_000;

const text = 'x'.repeat(600);

/** Returns microseconds of CPU time per signature. */
function costOf(sign: SignText): number {
  const before = process.cpuUsage();
  for (let count = 0; count < signatures; count++) sign(text);
  const { user, system } = process.cpuUsage(before);
  return (user + system) / signatures;
}

const { privateKey } = generateKeyPairSync('ed25519');
const sodium = loadedSodium();
if (!sodium) throw new Error('libsodium has no build for this machine');
const platform = signingByPlatform(privateKey);
const library = signingBySodium(sodium, privateKey);
const best = { platform: Number.POSITIVE_INFINITY, library: Number.POSITIVE_INFINITY };
for (let round = 0; round < rounds; round++) {
  best.platform = Math.min(best.platform, costOf(platform));
  best.library = Math.min(best.library, costOf(library));
}
const ratio = (best.platform / best.library).toFixed(2);
console.log(
  `${best.platform.toFixed(1)} µs by the platform, ${best.library.toFixed(1)} by libsodium: ${ratio} times`,
);
