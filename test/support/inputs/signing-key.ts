import { randomBytes } from 'node:crypto';
import { SigningKey } from '../../../src/protocol/index.ts';

/** Makes a new random key. @param name the part of its id after the colon */
export function newSigningKey(name: string): SigningKey {
  return SigningKey.fromSeed(name, randomBytes(32))!;
}
