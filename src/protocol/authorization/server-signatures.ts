import { signaturesOf } from '../crypto/signed-json.ts';
import type { RoomEvent } from '../event.ts';

/** Whether an event has a valid signature of a server. */
export type IsSignedBy = (event: RoomEvent, serverName: string) => boolean;

/**
 * Returns whether the event has a signature of the server, without verifying it: the signatures of every received event
 * were verified when it was received.
 */
export const hasSignatureOf: IsSignedBy = (event, serverName) =>
  signaturesOf(event.pdu, serverName).length > 0;
