import { signaturesOf } from '../crypto/signed-json.ts';
import type { RoomEvent } from '../event.ts';

/** Whether an event has a valid signature by that server. */
export type IsSignedBy = (event: RoomEvent, serverName: string) => boolean;

/**
 * For events whose signatures have been verified, as those of every received event are: a signature that
 * exists is valid.
 */
export const hasSignatureOf: IsSignedBy = (event, serverName) =>
  signaturesOf(event.pdu, serverName).length > 0;
