import type { JsonObject, StrippedState } from '../../protocol/index.ts';
import type { StoredEvent } from '../stored-event.ts';
import type { EventToSend } from '../timeline/event-to-send.ts';
import type { RoomWithVersion, VerifiedEvent } from './verified-event.ts';

/** How a received event is placed. */
export interface PlaceOptions {
  /** Ids of the whole state before the event, all of them known; for an event whose `prev_events` are not. */
  readonly stateBefore?: readonly string[];
  /** This server passes the event on to the servers of the room. */
  readonly distribute?: boolean;
  /** Throws M_FORBIDDEN, and stores nothing, where the event would be rejected or soft-failed. */
  readonly refuse?: boolean;
}

/** An answer to `send_join`, verified. */
export interface JoinResponse {
  /** The join. */
  readonly event: VerifiedEvent;
  /** The state before it. */
  readonly state: readonly VerifiedEvent[];
  readonly authChain: readonly VerifiedEvent[];
  /** The state lacks members that are of no interest to the event itself. */
  readonly partial?: { readonly servers: readonly string[]; readonly from: string };
}

/** What a user who is outside of a room is shown of it. */
export interface OutOfBandDetails {
  readonly state: readonly StrippedState[];
  /** Who has invited them, or taken their knock; absent when that ends. */
  readonly server?: string | undefined;
}

/** An older event on its way onto the timeline. */
export interface OlderEvent {
  readonly event: VerifiedEvent;
  /** Ids of the whole state before it, all known; needed where its `prev_events` are not known. */
  readonly stateBefore?: readonly string[];
  /** Nothing on the timeline need lead to it: it was found by its time, and what lies between may come later. */
  readonly detached?: boolean;
}

/** Puts the events of other servers at their places in this server's copies of rooms. */
export interface Placement {
  /** Ids that are stored, as events of any kind. */
  find(eventIds: Iterable<string>): Promise<Map<string, StoredEvent>>;

  /**
   * Stores events that have no place yet: auth events and state. Each is checked by its auth events, which must be
   * known or among `events`; those that are not allowed are stored as rejected. Events that are known stay as they
   * are. A room that is not known becomes known from outside.
   * @returns all of them, by event id
   * @throws MissingEvents
   */
  addOutliers(room: RoomWithVersion, events: readonly VerifiedEvent[]): Promise<Map<string, StoredEvent>>;

  /**
   * Puts an event at its place in the history. It is authorized by its auth events and by the state before it, or
   * else rejected, and by the current state, or else soft-failed. Where histories have parted, states are resolved.
   * Known events that have a place, or were rejected, are returned as they are.
   * Source: server-server API, "Checks performed on receipt of a PDU", "Soft failure".
   * @throws MissingEvents, MatrixError M_NOT_FOUND for a room without state here, M_FORBIDDEN with `refuse`
   */
  place(roomId: string, event: VerifiedEvent, options?: PlaceOptions): Promise<StoredEvent>;

  /**
   * Enters a room that no local user is in, with what a server in it has answered: whatever was known of the current
   * state is replaced.
   * @throws MatrixError M_FORBIDDEN when the join is not allowed by that state, MissingEvents
   */
  enter(room: RoomWithVersion, entry: JoinResponse): Promise<StoredEvent>;

  /**
   * Takes note of an invite to a room that this server is not in, of a knock on it, or of their end (a `leave`).
   * @param room of the version that came with the event: another one may be right
   * @param shown what the client is shown of the room, and which server has invited or taken the knock
   * @throws MatrixError M_FORBIDDEN when a local user is in the room, since then the event has a proper place; or when
   * this server was in the room, and knows it to be of another version
   */
  addOutOfBand(room: RoomWithVersion, event: VerifiedEvent, shown: OutOfBandDetails): Promise<StoredEvent>;

  /**
   * Puts older events at the beginning of the timeline. Each must be named as a previous event by one that is on the
   * timeline, or by one of the others, unless it stands apart. Events that are not allowed are stored as rejected.
   * @throws MissingEvents
   */
  backfill(roomId: string, events: readonly OlderEvent[]): Promise<void>;

  /**
   * An event that a user of another server may complete, sign and send to this server.
   * @throws MatrixError M_NOT_FOUND, M_FORBIDDEN when it is not allowed now
   */
  eventTemplate(roomId: string, draft: EventToSend): Promise<{ readonly event: JsonObject }>;

  /**
   * Replaces the state before the event that joined a room the fast way by the whole of it, and with it the state at
   * every event since. What was accepted by mistake is not any more.
   * @param state ids of the whole state before the join, all known
   */
  completeState(roomId: string, state: readonly string[]): Promise<void>;
}
