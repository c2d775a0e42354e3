import type { JsonObject, RoomEvent, StrippedState } from '../../protocol/index.ts';
import type { EventToSend } from '../event-to-send.ts';
import type { StoredEvent } from '../stored-event.ts';
import type { RoomHead } from '../timeline/room-head.ts';
import type { RoomWithVersion, VerifiedEvent } from '../verified-event.ts';

/**
 * The state after an event that this server has not placed, as a remote server reports it. All events of the state
 * before the event are stored. If the event itself is not stored, the state after it counts as equal to the state
 * before it.
 */
export interface StateAfterEvent {
  readonly eventId: string;
  /** Event ids of the whole state before the event. */
  readonly before: readonly string[];
}

/** The state before an event whose previous events are missing, as a remote server reports it, in one of two forms. */
export interface SuppliedState {
  /** Event ids of the whole state before the event, all stored. */
  readonly stateBefore?: readonly string[];
  /** The states after the previous events that are missing. */
  readonly statesAfterPrev?: readonly StateAfterEvent[];
}

/** Options of placing a received event. */
export interface PlaceOptions extends SuppliedState {
  /** This server sends the event to the other servers of the room. */
  readonly distribute?: boolean;
  /** A remote server sends this event of a local user to the other servers of the room, so this server does not. */
  readonly acceptedElsewhere?: boolean;
  /** If the event would be rejected or soft-failed, throws M_FORBIDDEN and stores nothing. */
  readonly refuse?: boolean;
}

/** A `send_join` response whose events are verified. */
export interface JoinResponse {
  /** The join. */
  readonly event: VerifiedEvent;
  /** The state before the join. */
  readonly state: readonly VerifiedEvent[];
  readonly authChain: readonly VerifiedEvent[];
  /**
   * Present when the state omits members (`members_omitted`), or lacks events whose keys could not be fetched: the
   * servers in the room, and the server that answered.
   */
  readonly partial?: { readonly servers: readonly string[]; readonly from: string };
}

/** The details of an out-of-band membership. */
export interface OutOfBandDetails {
  /** The stripped state for the client; empty for a leave. */
  readonly state: readonly StrippedState[];
  /** The server that sent the invite or received the knock; absent for a leave. */
  readonly server?: string | undefined;
}

/**
 * A backfilled event to be placed before the timeline. The state before the event must be supplied when its previous
 * events are missing.
 */
export interface OlderEvent extends SuppliedState {
  readonly event: VerifiedEvent;
  /**
   * The event was found by its time, so it is placed although no event on the timeline leads to it. The gap between the
   * event and the timeline may be filled later.
   */
  readonly detached?: boolean;
}

/**
 * Places the events of remote servers in this server's rooms. To place an event is to authorize it, to work out the
 * state after it, and to extend the timeline of the room.
 */
export interface Placement {
  /** Finds stored events by id, outliers and rejected events included; events that are not stored are absent. */
  find(eventIds: Iterable<string>): Promise<Map<string, StoredEvent>>;

  /**
   * Returns the ids of the messages among `events` that have expired by the retention policy of the room and are not on
   * its timeline. They stay missing, so that they can be backfilled when the policy changes.
   */
  missingExpiredMessages(
    head: RoomHead,
    events: readonly { readonly event: RoomEvent }[],
  ): Promise<ReadonlySet<string>>;

  /**
   * Stores auth events and state as outliers. Each is authorized by its auth events, which must be stored or among
   * `events`; events that are not allowed are stored as rejected. Stored events stay as they are. An unknown room is
   * stored with the version of `room`.
   * @returns all these events, by event id
   * @throws MissingEvents when an auth event is neither stored nor among `events`; MatrixError M_FORBIDDEN for an event
   * of another room or room version
   */
  addOutliers(room: RoomWithVersion, events: readonly VerifiedEvent[]): Promise<Map<string, StoredEvent>>;

  /**
   * Places an event in the room's history. An event that its auth events or the state before it do not allow is
   * rejected; an event that the current state does not allow is soft-failed. Where the history forks, states are
   * resolved. Events that are placed or rejected already are returned as they are.
   * Source: server-server API, "Checks performed on receipt of a PDU", "Soft failure".
   * @throws MissingEvents, MatrixError M_NOT_FOUND for a room that this server has not entered, M_FORBIDDEN for an
   * event of another room or without previous events and, with `refuse`, for an event that is not allowed; with
   * `refuse` also the errors of the room's policy server
   */
  place(roomId: string, event: VerifiedEvent, options?: PlaceOptions): Promise<StoredEvent>;

  /**
   * Enters a room that no local user is in, with the `send_join` response of a resident server. The state in the
   * response replaces the current state.
   * @throws MatrixError M_FORBIDDEN when the state in the response does not allow the join, MissingEvents
   */
  enter(room: RoomWithVersion, entry: JoinResponse): Promise<StoredEvent>;

  /**
   * Stores an invite to a room that this server is not in, a knock on it, or a leave that ends an invite or a knock.
   * @param room the room with the version that the request names; this version is unverified
   * @throws MatrixError M_BAD_JSON for any other event; M_FORBIDDEN for the membership of a remote user, for an event
   * that is placed already, when a local user is in the room, because then the event must be placed, and for an invite
   * or a knock when this server has entered the room with another version
   */
  addOutOfBand(room: RoomWithVersion, event: VerifiedEvent, details: OutOfBandDetails): Promise<StoredEvent>;

  /**
   * Places older events before the timeline. Each must be a previous event of an event on the timeline or of another
   * event in `events`, unless it is detached. Events that are not allowed are stored as rejected.
   * @throws MissingEvents when auth events, or previous events without a supplied state, are missing; MatrixError
   * M_NOT_FOUND for a room that this server has not entered, M_FORBIDDEN for an event of another room
   */
  backfill(roomId: string, events: readonly OlderEvent[]): Promise<void>;

  /**
   * Builds an event template for a user of a remote server.
   * @throws MatrixError M_NOT_FOUND for a room that this server has not entered; M_FORBIDDEN when the current state
   * does not allow the event; M_BAD_JSON; M_TOO_LARGE
   */
  eventTemplate(roomId: string, draft: EventToSend): Promise<{ readonly event: JsonObject }>;

  /**
   * Replaces the partial state before the join by the whole state, and revises the states of all events since the
   * join. Events that the whole state does not allow become rejected.
   * @param state the whole state before the join
   * @param options `lacksKeys` says that the state lacks events whose keys could not be fetched; then it stays partial
   * @throws MissingEvents; MatrixError M_NOT_FOUND for an unknown room
   */
  completeState(
    roomId: string,
    state: SuppliedState,
    options?: { readonly lacksKeys?: boolean },
  ): Promise<void>;
}
