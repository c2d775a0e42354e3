import type { RoomEvent } from '../../protocol/index.ts';

/**
 * An event from another server whose format, signatures and hash have been checked; redacted where its hash was wrong.
 * Nothing is known yet of whether it is allowed.
 */
export interface VerifiedEvent {
  readonly event: RoomEvent;
  /** The PDU as canonical JSON: what is stored. */
  readonly json: string;
}

/** A room as far as one must know it before anything of it is stored. */
export interface RoomWithVersion {
  readonly roomId: string;
  readonly version: RoomEvent['version'];
}
