import type { ServerKey } from '../../protocol/index.ts';

/** A key to look up. */
export interface WantedKey {
  readonly serverName: string;
  readonly keyId: string;
  /**
   * The key must be valid until this time, in milliseconds since the epoch; 0 when the validity does not matter. A
   * retired key is accepted in any case.
   */
  readonly validUntil: number;
}

/** A key id that stands for all keys of a server. */
export const anyKey = '';

/** Whether a key meets the requirements, so that no newer key has to be fetched. */
export function satisfies(key: ServerKey | undefined, { validUntil }: WantedKey): boolean {
  return key !== undefined && (key.expiredTs !== undefined || key.validUntilTs >= validUntil);
}
