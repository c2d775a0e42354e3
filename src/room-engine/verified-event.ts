import type { RoomEvent } from '../protocol/index.ts';

/**
 * An event of a remote server whose format, signatures and hash have been checked; redacted where its hash
 * was wrong. It is not authorized yet.
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
