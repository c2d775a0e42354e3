import type { JsonObject, JsonValue } from '../../protocol/index.ts';

/** What a user of this server wants to become in a room that it is not in. */
export type HandshakeMembership = 'join' | 'leave' | 'knock';

export interface PeerRequest {
  readonly signal?: AbortSignal | undefined;
  /** Milliseconds. */
  readonly timeout?: number | undefined;
  /** Ask even if the server could not be reached lately, because somebody waits for it. */
  readonly ignoreBackoff?: boolean | undefined;
}

/** An event that another server has prepared. */
export interface PreparedEvent {
  /** `undefined` when the server does not say. */
  readonly roomVersion: string | undefined;
  readonly event: JsonObject;
}

/** A signed event on its way to another server. */
export interface HandshakeEvent {
  readonly roomId: string;
  readonly eventId: string;
  /** The PDU. */
  readonly event: JsonObject;
}

export interface HandshakeInvite extends HandshakeEvent {
  readonly roomVersion: string;
  /** Events that describe the room. */
  readonly inviteRoomState: readonly JsonObject[];
}

/** A room as the server describes it that has let somebody in. */
export interface RoomOfPeer {
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
  fetchTemplate(
    server: string,
    membership: HandshakeMembership,
    place: { readonly roomId: string; readonly userId: string },
    versions: readonly string[],
    request?: PeerRequest,
  ): Promise<PreparedEvent>;
  sendJoin(
    server: string,
    join: HandshakeEvent,
    omitMembers: boolean,
    request?: PeerRequest,
  ): Promise<RoomOfPeer>;
  sendLeave(server: string, leave: HandshakeEvent, request?: PeerRequest): Promise<void>;
  /** @returns events that describe the room */
  sendKnock(server: string, knock: HandshakeEvent, request?: PeerRequest): Promise<readonly JsonValue[]>;
  /** @returns the event with the signature of the other server */
  invite(server: string, invite: HandshakeInvite, request?: PeerRequest): Promise<JsonObject>;
  complexity(server: string, roomId: string, request?: PeerRequest): Promise<number | undefined>;
}
