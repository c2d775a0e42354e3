import type { JsonObject, JsonValue } from '../../protocol/index.ts';

/** What a user of this server wants to become in a room that it is not in. */
export type HandshakeMembership = 'join' | 'leave' | 'knock';

export interface MembershipRequest {
  readonly signal?: AbortSignal | undefined;
  /** Milliseconds. */
  readonly timeout?: number | undefined;
  /** Ask even if the server could not be reached lately, because somebody waits for it. */
  readonly ignoreBackoff?: boolean | undefined;
}

/** An event that another server has prepared. */
export interface EventTemplate {
  /** `undefined` when the server does not say. */
  readonly roomVersion: string | undefined;
  readonly event: JsonObject;
}

/** A signed event on its way to another server. */
export interface SignedEvent {
  readonly roomId: string;
  readonly eventId: string;
  /** The PDU. */
  readonly event: JsonObject;
}

export interface SignedInvite extends SignedEvent {
  readonly roomVersion: string;
  /** Events that describe the room. */
  readonly inviteRoomState: readonly JsonObject[];
}

/** A room as the server describes it that has let somebody in. */
export interface SendJoinResponse {
  /** The state before the join, and the events that authorise it. */
  readonly state: readonly JsonValue[];
  readonly authChain: readonly JsonValue[];
  /** The join with the signatures that it has now. */
  readonly event: JsonObject | undefined;
  /** Whether the state lacks members. */
  readonly membersOmitted: boolean;
  readonly serversInRoom: readonly string[];
}

/**
 * What other servers are asked about the memberships of users. Answers have the right shape and a bounded size, and
 * nothing else is true of them. Every method throws when the server can not be asked, refuses, or answers what makes
 * no sense.
 */
export interface MembershipPeers {
  fetchEventTemplate(
    server: string,
    membership: HandshakeMembership,
    place: { readonly roomId: string; readonly userId: string },
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
  /** @returns events that describe the room */
  sendKnock(server: string, knock: SignedEvent, request?: MembershipRequest): Promise<readonly JsonValue[]>;
  /** @returns the event with the signature of the other server */
  invite(server: string, invite: SignedInvite, request?: MembershipRequest): Promise<JsonObject>;
  complexity(server: string, roomId: string, request?: MembershipRequest): Promise<number | undefined>;
}
