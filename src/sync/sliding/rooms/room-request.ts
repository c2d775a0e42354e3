import type { UserRoom } from '../../../room-engine/index.ts';
import type { Recipient } from '../../classic/recipient.ts';
import type { Connection } from '../connections/connection.ts';
import type { RoomDetails } from '../connections/sent-details.ts';
import type { SentRoom } from '../connections/sent-room.ts';
import type { RoomConfig } from './room-config.ts';

/** A room that an answer may have to tell of. */
export interface RoomRequest {
  readonly room: UserRoom;
  readonly config: RoomConfig;
  /** Names of the lists that it is in. */
  readonly lists: readonly string[];
  readonly connection: Connection;
  readonly recipient: Recipient;
  /** What the client was sent of it; `undefined`: nothing. */
  readonly sent: SentRoom | undefined;
  /** The position of the client. */
  readonly since: number | undefined;
  /** What the client was sent goes up to here; `undefined`: the room is new to it. */
  readonly after: number | undefined;
  readonly upTo: number;
  /** Its timeline may have grown since. */
  readonly hasGrown: boolean;
  /** Something may have happened to what is told of it besides its events. */
  readonly isTouched: boolean;
  /** The user counts it among their conversations with single people. */
  readonly isDirect: boolean;
}

/** What an answer tells of a room. */
export interface RoomResult {
  /** As JSON; `undefined`: there is nothing to say. */
  readonly text: string | undefined;
  /** How much of its timeline and state the client has then. */
  readonly sent: Pick<SentRoom, 'timelineLimit' | 'state'>;
  readonly isInitial: boolean;
  /** Ids of the events in the timeline. */
  readonly eventIds: readonly string[];
  /** Membership events that were sent because the timeline needs them. */
  readonly members: ReadonlyMap<string, number>;
  readonly told: RoomDetails | undefined;
}

/** Nothing to say of a room. */
export function nothingNew({ sent }: RoomRequest): RoomResult {
  const { timelineLimit = 0, state = '[]' } = sent ?? {};
  return {
    text: undefined,
    sent: { timelineLimit, state },
    isInitial: false,
    eventIds: [],
    members: new Map(),
    told: undefined,
  };
}
