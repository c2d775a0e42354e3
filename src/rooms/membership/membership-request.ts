import type { JsonObject } from '../../protocol/index.ts';
import type { Requesting } from '../limits.ts';

/** How a membership is to be changed. */
export interface MembershipRequest {
  /** Who asks for it; absent when the server acts of its own accord. */
  readonly requester?: Requesting;
  /** Further content of the event, for instance `reason`. */
  readonly given?: JsonObject;
  /** Servers that may be in the room, for one that this server is not in. */
  readonly via?: readonly string[];
  /** Milliseconds since the epoch, where the event is made here; by default now. */
  readonly originServerTs?: number | undefined;
}
