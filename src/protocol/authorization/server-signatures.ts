import { signaturesOf } from '../crypto/signed-json.ts';
import type { RoomEvent } from '../event.ts';

/** Whether the event is validly signed by that server. */
export type IsSignedBy = (event: RoomEvent, serverName: string) => boolean;

/**
 * For events whose signatures were verified before, as those of every received event are: a signature that is
 * there is valid.
 */
export const hasSignatureOf: IsSignedBy = (event, serverName) =>
  signaturesOf(event.pdu, serverName).length > 0;
