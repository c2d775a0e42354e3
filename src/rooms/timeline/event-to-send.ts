import type { JsonObject } from '../../protocol/index.ts';

/** An event that a local user wants to send; everything else follows from the room. */
export interface EventToSend {
  readonly type: string;
  /** Present for state events. */
  readonly stateKey?: string;
  readonly sender: string;
  readonly content: JsonObject;
  /** The event that an `m.room.redaction` redacts. */
  readonly redacts?: string;
  /** Milliseconds since the epoch; by default now. */
  readonly originServerTs?: number;
}
