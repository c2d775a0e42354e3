import type { UserRoom } from '../../../room-engine/index.ts';
import type { Recipient } from '../../classic/recipient.ts';
import type { Connection } from '../connections/connection.ts';
import type { RoomDetails } from '../connections/sent-details.ts';
import { nothingSent, type SentRoom } from '../connections/sent-room.ts';
import type { RoomConfig } from './room-config.ts';

/** A room that an answer may contain. */
export interface RoomRequest {
  readonly room: UserRoom;
  readonly config: RoomConfig;
  /** Names of the lists that contain the room. */
  readonly lists: readonly string[];
  readonly connection: Connection;
  readonly recipient: Recipient;
  /** The parts of the room that the client was sent; `undefined` if it was sent nothing. */
  readonly sent: SentRoom | undefined;
  /** The stream position that the `pos` of the client stands for; `undefined` without `pos`. */
  readonly since: number | undefined;
  /**
   * The client was sent the timeline of the room up to this position, at most `since`; `undefined` when it was sent
   * nothing of the timeline, or the user has joined the room since.
   */
  readonly after: number | undefined;
  /** The stream position that the answer reaches. */
  readonly upTo: number;
  /** Whether the timeline of the room may have new events. */
  readonly mayHaveNewEvents: boolean;
  /** Whether anything besides the events of the room may have changed. */
  readonly mayHaveOtherChanges: boolean;
  /** Whether the user has marked the room as a direct chat. */
  readonly isDirect: boolean;
}

/** The entry of a room in an answer, and what the connection records as sent with it. */
export interface RoomResult {
  /** The entry as JSON text; `undefined` without new data. */
  readonly text: string | undefined;
  /** The timeline limit and the required state by which the entry was made. */
  readonly sent: Pick<SentRoom, 'timelineLimit' | 'requiredState'>;
  readonly isInitial: boolean;
  /** Ids of the events in the timeline. */
  readonly eventIds: readonly string[];
  /** Nids of the membership events that are sent because the timeline needs them, by user id. */
  readonly members: ReadonlyMap<string, number>;
  readonly details: RoomDetails | undefined;
}

/** Returns the result for a room without new data. */
export function nothingNew({ sent }: RoomRequest): RoomResult {
  const { timelineLimit, requiredState } = sent ?? nothingSent;
  return {
    text: undefined,
    sent: { timelineLimit, requiredState },
    isInitial: false,
    eventIds: [],
    members: new Map(),
    details: undefined,
  };
}
