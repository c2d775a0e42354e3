import type { JsonObject } from '../../protocol/index.ts';
import type { Decision } from './decision.ts';
import type { EventDraft, NewEvent, RoomStateView } from './rooms.ts';

/** The content of an event that replaces the content from its sender. */
export interface ChangedContent {
  readonly content: JsonObject;
}

/** Rules for rooms beyond the rules of the specification (third-party rules). */
export interface EventRules {
  /**
   * Checks every event of local users, with the state of its room. It may change the content: then the event is sent with that
   * content, as far as the rules of the room allow it. Fields on which the server has already acted must stay as they are:
   * `membership`, `third_party_invite` and `join_authorised_via_users_server` of memberships, `redacts` of redactions, and
   * `room_version`, `creator`, `additional_creators` and `predecessor` of `m.room.create`. When the check fails, or changes one
   * of these, the event is rejected.
   * @param state of the room before the event; empty for the events with which a room begins
   */
  checkEventAllowed?(
    event: EventDraft,
    state: RoomStateView,
  ): Decision | ChangedContent | Promise<Decision | ChangedContent>;
  /**
   * Checks the creation of a room. When it fails, the room is not created.
   * @param events all events with which the room begins
   */
  checkRoomCreation?(userId: string, events: readonly EventDraft[]): Decision | Promise<Decision>;
  /** Checks invites of mail addresses and phone numbers that no user has. When it fails, the invite is rejected. */
  mayInviteAddress?(medium: string, address: string, state: RoomStateView): Decision | Promise<Decision>;
  /**
   * Checks whether a room may be added to the room directory (`public`) or removed from it (`private`). When it fails, the
   * request is rejected; for a room that is being created, only the directory entry is left out.
   */
  mayChangeVisibility?(
    roomId: string,
    visibility: 'public' | 'private',
    state: RoomStateView,
  ): Decision | Promise<Decision>;
  /** Checks whether an administrator may delete a room. When it fails, the request is rejected. */
  mayDeleteRoom?(administrator: string, roomId: string): Decision | Promise<Decision>;
  /**
   * Receives every new event of local and remote users that clients see, after it is stored. Events arrive in order;
   * the server does not wait for the answer. A failure is logged and changes nothing. An event that was not passed on
   * before the server stopped is not passed on after the next start.
   */
  onNewEvent?(event: NewEvent, state: RoomStateView): void | Promise<void>;
}
