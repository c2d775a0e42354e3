import { randomBytes } from 'node:crypto';
import { SigningKey } from '../../../src/protocol/index.ts';

/** A key that nobody has had before. @param name the part of its id behind the colon */
export function newSigningKey(name: string): SigningKey {
  return SigningKey.fromSeed(name, randomBytes(32))!;
}
