import type { JsonObject } from '../../protocol/index.ts';

/** An event of a local user that is about to be sent. */
export interface EventDraft {
  /** Absent during the creation of a room whose id is the hash of its first event. */
  readonly roomId: string | undefined;
  readonly type: string;
  /** Present for state events. */
  readonly stateKey?: string;
  readonly sender: string;
  readonly content: JsonObject;
  /** The id of the event that a redaction redacts. */
  readonly redacts?: string;
}

/** An event of a local or remote user that is part of a room. */
export interface NewEvent {
  readonly eventId: string;
  readonly roomId: string;
  readonly type: string;
  /** Present for state events. */
  readonly stateKey?: string;
  readonly sender: string;
  readonly content: JsonObject;
  /** Milliseconds since the epoch, as the sender's server claims. */
  readonly originServerTs: number;
}

/** An event of the current state of a room. */
export type StateEvent = NewEvent & { readonly stateKey: string };

/** Reads the current state of one room. */
export interface RoomStateView {
  /** Returns a state event; `undefined` where there is none, and in rooms that this server does not know. */
  get(type: string, stateKey: string): Promise<StateEvent | undefined>;
  /** Returns the membership of a user; `undefined` for users without one. */
  membership(userId: string): Promise<string | undefined>;
}

/** A room to create. */
export interface NewRoom {
  readonly name?: string;
  readonly topic?: string;
  /** `private_chat` when absent, or `public_chat` with `isPublished`. */
  readonly preset?: 'private_chat' | 'trusted_private_chat' | 'public_chat';
  /** Localpart of an alias. */
  readonly alias?: string;
  /** Whether the room directory lists the room. */
  readonly isPublished?: boolean;
  /** User ids. */
  readonly invite?: readonly string[];
  readonly isDirect?: boolean;
  readonly initialState?: readonly {
    readonly type: string;
    readonly stateKey: string;
    readonly content: JsonObject;
  }[];
  /** The room version; the configured default when absent. */
  readonly version?: string;
}

/** Rooms; usable as soon as the server is started, and in every callback. */
export interface RoomAccess {
  /** Returns a view of the room's current state. */
  state(roomId: string): RoomStateView;
  /**
   * Sends an event as a local user, who must be allowed to send it by the rules of the room. Checks of modules apply,
   * rate limits do not. An event of type `m.room.member`, with a `stateKey`, joins, invites, leaves, kicks or bans.
   * @returns the event id
   */
  send(event: EventDraft & { readonly roomId: string }): Promise<string>;
  /**
   * Creates a room as a local user. Checks of modules apply, rate limits do not.
   * @returns the room id
   */
  create(creator: string, room?: NewRoom): Promise<string>;
  /**
   * Joins a local user to a room of this or of another server. Checks of modules apply, rate limits do not.
   * @param room its id or an alias
   * @param via servers that may be in the room
   * @returns the room id
   */
  join(userId: string, room: string, via?: readonly string[]): Promise<string>;
  /** Returns the room of an alias of this or of another server. @throws an error with `errcode` M_NOT_FOUND */
  resolve(alias: string): Promise<string>;
}
