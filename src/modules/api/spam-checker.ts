import type { JsonObject } from '../../protocol/index.ts';
import type { Decision } from './decision.ts';
import type { EventDraft, NewEvent, RoomStateView } from './rooms.ts';

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
  /** Mail addresses and phone numbers that the client has validated. */
  readonly addresses: readonly { readonly medium: string; readonly address: string }[];
  /** Address of the client. */
  readonly ip: string;
}

/** An invite of a local user by a remote user. */
export interface ReceivedInvite extends NewEvent {
  /** The invited user. */
  readonly stateKey: string;
  /** State events of the room as the other server has sent them, without verification. */
  readonly roomState: readonly JsonObject[];
}

/** A user whom a search of the user directory has found. */
export interface FoundUser {
  readonly userId: string;
  readonly displayName: string | undefined;
  /** An `mxc://` URI. */
  readonly avatarUrl: string | undefined;
}

/** A file before it is stored. This type does not change when the types of the media repository change. */
export interface CheckedFile {
  /** The local user who uploads it; absent for files of other servers. */
  readonly userId: string | undefined;
  /** The server that has it; absent for uploads. */
  readonly remoteServer: string | undefined;
  /** As the client or the other server claims. */
  readonly contentType: string;
  readonly fileName: string | undefined;
  /** Bytes. */
  readonly size: number;
  /** In hexadecimal digits. */
  readonly sha256: string;
  /** Reads the content. */
  read(): AsyncIterable<Uint8Array>;
}

/**
 * Decides what users of this server may do, and what this server accepts from other servers. A check cannot permit
 * what the specification or the configuration forbids. When a check throws or times out, the request is rejected,
 * except where its description says otherwise.
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
  /**
   * Checks invites by local users, and invites of local users by remote users.
   * @param roomId absent for an invite at the creation of a room whose id is the hash of its first event
   */
  mayInvite?(inviter: string, invitee: string, roomId: string | undefined): Answer;
  /** Checks the creation of rooms. @param events all events with which the room begins */
  mayCreateRoom?(userId: string, events: readonly EventDraft[]): Answer;
  /** Checks new aliases. */
  mayCreateAlias?(userId: string, alias: string): Answer;
  /**
   * Checks whether a user may publish a room in the room directory. A denied request is rejected with M_FORBIDDEN,
   * whatever `errcode` the denial has; for a room that is being created, only the directory entry is left out.
   */
  mayPublishRoom?(userId: string, roomId: string): Answer;
  /**
   * Checks registrations by clients. Guests are checked, too, and again when they become full users. Registrations by
   * administrators and application services are not checked. `shadow-ban` allows the registration: the server then
   * accepts the events of the user, but does not send them.
   */
  checkRegistration?(registration: NewRegistration): Answer | 'shadow-ban' | Promise<Decision | 'shadow-ban'>;
  /** Checks logins, including logins with login tokens and logins of application services. */
  checkLogin?(login: NewLogin): Answer;
  /** Checks invites of local users by remote users, before `mayInvite`. */
  mayReceiveInvite?(invite: ReceivedInvite): Answer;
  /**
   * Checks invites of mail addresses and phone numbers that no user has. `mayInvite` checks the invite if a user has
   * the address.
   * @param medium `email` or `msisdn`
   */
  mayInviteAddress?(inviter: string, medium: string, address: string, roomId: string): Answer;
  /**
   * Checks events of remote users before they are added to a room. An event that is denied, or whose check throws, is
   * soft-failed: clients do not see it.
   * @param state the current state of the room
   */
  checkReceivedEvent?(event: NewEvent, state: RoomStateView): Answer;
  /**
   * Checks events of remote servers that have a valid format, before their signatures are checked; and invites of
   * remote servers, before they are stored. An event that is denied, or whose check throws, is dropped: this server
   * then lacks it, and may be unable to place later events that refer to it.
   */
  mayReceiveEvent?(event: NewEvent): Answer;
  /** Checks whether a search of the user directory may show a user. When the check throws, the user is not shown. */
  mayShowUser?(user: FoundUser, searcher: string): Answer;
  /**
   * Checks files that local users upload and files of other servers, before they are stored. Times out after 60
   * seconds.
   */
  checkMediaFile?(file: CheckedFile): Answer;
}
