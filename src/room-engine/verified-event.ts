import type { RoomEvent } from '../protocol/index.ts';

/**
 * An event of a remote server whose format, signatures and hash have been checked, or an event that this server has
 * built and signed. An event whose hash is wrong is in its redacted form. The event need not be authorized yet.
 */
export interface VerifiedEvent {
  readonly event: RoomEvent;
  /** The PDU as canonical JSON, as it is stored. */
  readonly json: string;
}

/** The id and version of a room, known before anything of the room is stored. */
export interface RoomWithVersion {
  readonly roomId: string;
  readonly version: RoomEvent['version'];
}
