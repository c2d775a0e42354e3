import type { RoomEvent } from '../../protocol/index.ts';

/** An event from another server whose format, signatures and hash were checked; redacted where the hash was wrong. */
export interface VerifiedEvent {
  readonly event: RoomEvent;
  /** The PDU as canonical JSON. */
  readonly json: string;
}
