import type { Decision } from './decision.ts';
import type { EventDraft, NewEvent, RoomStateView } from './rooms.ts';

/** Rules for rooms that go beyond those of the specification (third-party rules). */
export interface EventRules {
  /**
   * Checks every event of local users, with the state of its room. It cannot change the event. When it fails, the event
   * is rejected.
   * @param state of the room before the event; empty for the events with which a room begins
   */
  checkEventAllowed?(event: EventDraft, state: RoomStateView): Decision | Promise<Decision>;
  /**
   * Checks the creation of a room. When it fails, the room is not created.
   * @param events all events with which the room begins
   */
  checkRoomCreation?(userId: string, events: readonly EventDraft[]): Decision | Promise<Decision>;
  /**
   * Receives every new event of local and remote users that clients see, after it is stored. Events arrive in order;
   * the server does not wait for the answer. A failure is logged and changes nothing. Events of the time in which the
   * server was stopped are not repeated.
   */
  onNewEvent?(event: NewEvent, state: RoomStateView): void | Promise<void>;
}
