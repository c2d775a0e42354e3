import { invalidParam } from '../../protocol/index.ts';

/** The letter says what the token is, the digit which form of it: a later form may hold one position per writer. */
const prefix = 's1_';

/** A position as clients hold it, for instance `s1_4711`. */
export function encodePosition(position: number): string {
  return prefix + position;
}

/** @throws MatrixError M_INVALID_PARAM when the token is not one of ours. */
export function decodePosition(token: string): number {
  const digits = token.startsWith(prefix) ? token.slice(prefix.length) : '';
  const position = Number(digits);
  if (!/^\d{1,16}$/.test(digits) || !Number.isSafeInteger(position)) {
    throw invalidParam('This is not a token of this server');
  }
  return position;
}
