import type { ServerKey } from '../../protocol/index.ts';

/** A key that somebody needs. */
export interface WantedKey {
  readonly serverName: string;
  readonly keyId: string;
  /** It should be valid until then at least, or be retired. Milliseconds since the epoch; 0 when it does not matter. */
  readonly validUntil: number;
}

/** Whether nothing better has to be looked for. */
export function satisfies(key: ServerKey | undefined, { validUntil }: WantedKey): boolean {
  return key !== undefined && (key.expiredTs !== undefined || key.validUntilTs >= validUntil);
}
