import type { Decision } from './decision.ts';
import type { EventDraft } from './rooms.ts';

type Answer = Decision | Promise<Decision>;

/** A login whose user has been authenticated, before its session is opened. */
export interface NewLogin {
  readonly userId: string;
  /** Login type, for instance `m.login.password`. */
  readonly type: string;
  /** Absent when the client lets the server choose one. */
  readonly deviceId: string | undefined;
  readonly deviceName: string | undefined;
  /** Address of the client. */
  readonly ip: string;
}

/** A registration that has completed its stages, before the account is created. */
export interface NewRegistration {
  readonly userId: string;
  readonly isGuest: boolean;
  /** Address of the client. */
  readonly ip: string;
}

/**
 * Decides what users of this server may do. A check is asked after the rules of the specification and of the configuration,
 * so it can only forbid. When a check fails, the request is rejected.
 */
export interface SpamChecker {
  /** Checks every event of local users: messages, redactions, state, memberships, and all events of new rooms. */
  checkEvent?(event: EventDraft): Answer;
  /** Checks state events of local users, except memberships and the events with which a room begins. */
  checkStateEvent?(event: EventDraft & { readonly stateKey: string }): Answer;
  /**
   * Checks joins of local users to rooms that exist, here and on other servers.
   * @param isInvited whether the user was invited
   */
  mayJoinRoom?(userId: string, roomId: string, isInvited: boolean): Answer;
  /** Checks invites by local users. @param roomId absent while a room is created whose id is the hash of its first event */
  mayInvite?(inviter: string, invitee: string, roomId: string | undefined): Answer;
  /** Checks the creation of rooms. @param events all events with which the room begins */
  mayCreateRoom?(userId: string, events: readonly EventDraft[]): Answer;
  /** Checks new aliases. */
  mayCreateAlias?(userId: string, alias: string): Answer;
  /**
   * Checks whether a user may publish a room in the room directory. Without it the request is rejected with M_FORBIDDEN,
   * whatever the denial says, and a new room is created unpublished.
   */
  mayPublishRoom?(userId: string, roomId: string): Answer;
  /** Checks registrations by clients, also of guests; not those by administrators and application services. */
  checkRegistration?(registration: NewRegistration): Answer;
  /** Checks logins, also with login tokens and of application services. */
  checkLogin?(login: NewLogin): Answer;
}
