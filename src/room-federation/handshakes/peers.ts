import type { JsonObject, JsonValue } from '../../protocol/index.ts';

/** The membership that a local user requests in a room that this server is not in. */
export type HandshakeMembership = 'join' | 'leave' | 'knock';

export interface MembershipRequest {
  readonly signal?: AbortSignal | undefined;
  /** Maximum duration of the request in milliseconds. */
  readonly timeout?: number | undefined;
  /** Whether to send the request even if the server is in backoff, because a client waits for it. */
  readonly ignoreBackoff?: boolean | undefined;
}

/** The event template that a remote server prepared. */
export interface EventTemplate {
  /** `undefined` when the response does not contain it. */
  readonly roomVersion: string | undefined;
  readonly event: JsonObject;
}

/** A signed event to send to a remote server. */
export interface SignedEvent {
  readonly roomId: string;
  readonly eventId: string;
  /** The PDU. */
  readonly event: JsonObject;
}

export interface SignedInvite extends SignedEvent {
  readonly roomVersion: string;
  /** Stripped state or PDUs that describe the room. */
  readonly inviteRoomState: readonly JsonObject[];
}

/** The room as a resident server describes it in its `send_join` response. */
export interface SendJoinResponse {
  /** The state before the join. */
  readonly state: readonly JsonValue[];
  /** The auth chain of the state. */
  readonly authChain: readonly JsonValue[];
  /** The join with all of its signatures. */
  readonly event: JsonObject | undefined;
  /** Whether members are left out of the state. */
  readonly membersOmitted: boolean;
  readonly serversInRoom: readonly string[];
}

/**
 * Membership requests to remote servers. Responses have the right shape and a bounded size; nothing else about them is
 * verified. Every method throws when the server is unreachable, refuses, or responds with invalid data.
 */
export interface MembershipPeers {
  /**
   * Fetches an event template (`make_join`, `make_leave` or `make_knock`).
   * @param versions room versions that this server supports
   */
  fetchEventTemplate(
    server: string,
    membership: HandshakeMembership,
    member: { readonly roomId: string; readonly userId: string },
    versions: readonly string[],
    request?: MembershipRequest,
  ): Promise<EventTemplate>;
  sendJoin(
    server: string,
    join: SignedEvent,
    omitMembers: boolean,
    request?: MembershipRequest,
  ): Promise<SendJoinResponse>;
  sendLeave(server: string, leave: SignedEvent, request?: MembershipRequest): Promise<void>;
  /** @returns the `knock_room_state` */
  sendKnock(server: string, knock: SignedEvent, request?: MembershipRequest): Promise<readonly JsonValue[]>;
  /** @returns the event with the signature of the remote server */
  invite(server: string, invite: SignedInvite, request?: MembershipRequest): Promise<JsonObject>;
  /** Returns the complexity of a room; `undefined` when the response does not contain it. */
  complexity(server: string, roomId: string, request?: MembershipRequest): Promise<number | undefined>;
}
