import { isServerName, type JsonObject, type JsonValue, numberOf } from '../../protocol/index.ts';
import { RemoteError } from '../requests/errors.ts';
import type { FederationClient } from '../requests/federation-client.ts';
import { type FederationRequest, federationPath } from '../requests/request.ts';
import type { ApiRequest } from './api-request.ts';
import { ResponseShape } from './response-shape.ts';

/** Bytes of an answer with one event and some state to show; with the whole state of a room. */
const maxBody = { event: 4 * 1024 * 1024, state: 64 * 1024 * 1024 } as const;

/** Entries of a list in an answer: of events that describe a room, and of those that are its state. */
const maxEntries = { strippedState: 1_000, state: 500_000, servers: 100_000 } as const;

/** Milliseconds until a server has put together the whole state of a large room. */
const stateTimeout = 180_000;

/** What a user of this server wants to become in a room that another server is in. */
export type HandshakeMembership = 'join' | 'leave' | 'knock';

/** An event that another server has prepared for a user of this one. */
export interface EventTemplate {
  /** `undefined` when the server does not say. */
  readonly roomVersion: string | undefined;
  readonly event: JsonObject;
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

export interface SignedEvent {
  readonly roomId: string;
  readonly eventId: string;
  /** The PDU. */
  readonly event: JsonObject;
}

export interface OutgoingInvite extends SignedEvent {
  readonly roomVersion: string;
  /** Events that describe the room. */
  readonly inviteRoomState: readonly JsonObject[];
}

export interface MembershipRequest extends ApiRequest {
  /** Ask even if the server is being left alone, because somebody waits for it. */
  readonly ignoreBackoff?: boolean | undefined;
}

/**
 * How users of this server get into rooms that it is not in, and out again, and how users of other servers are
 * invited. Nobody has checked the events that come back.
 * Source: server-server API, "Joining Rooms", "Knocking upon a room", "Inviting to a room", "Leaving Rooms".
 */
export class MembershipApi {
  readonly #client: FederationClient;

  constructor(client: FederationClient) {
    this.#client = client;
  }

  /**
   * Asks for an event with which a user can join, knock or leave.
   * @param versions of rooms that this server knows
   * @throws as `FederationClient.request` does, also the other methods
   */
  async fetchTemplate(
    server: string,
    membership: HandshakeMembership,
    { roomId, userId }: { readonly roomId: string; readonly userId: string },
    versions: readonly string[],
    request?: MembershipRequest,
  ): Promise<EventTemplate> {
    const answer = await this.#client.request({
      ...base(server, request),
      method: 'GET',
      path: federationPath`/_proto/federation/v1/make_${membership}/${roomId}/${userId}`,
      ...(membership !== 'leave' && { query: { ver: versions } }),
      maxBody: maxBody.event,
    });
    const shape = new ResponseShape(server, answer);
    return { roomVersion: shape.optionalString('room_version'), event: shape.object('event') };
  }

  /** Hands in a join. @param omitMembers whether the answer may lack members */
  async sendJoin(
    server: string,
    join: SignedEvent,
    omitMembers: boolean,
    request?: MembershipRequest,
  ): Promise<SendJoinResponse> {
    const { roomId, eventId, event } = join;
    const rest = {
      ...base(server, request),
      timeout: request?.timeout ?? stateTimeout,
      method: 'PUT',
      body: event,
      maxBody: maxBody.state,
    } as const;
    const answer = await withFallback(
      () =>
        this.#client.request({
          ...rest,
          path: federationPath`/_proto/federation/v2/send_join/${roomId}/${eventId}`,
          ...(omitMembers && { query: { omit_members: true } }),
        }),
      () =>
        this.#client.requestPair({
          ...rest,
          path: federationPath`/_proto/federation/v1/send_join/${roomId}/${eventId}`,
        }),
    );
    const shape = new ResponseShape(server, answer);
    const membersOmitted = answer['members_omitted'] === true;
    return {
      state: shape.list('state', maxEntries.state),
      authChain: shape.list('auth_chain', maxEntries.state),
      event: answer['event'] === undefined ? undefined : shape.object('event'),
      membersOmitted,
      serversInRoom: membersOmitted
        ? shape.list('servers_in_room', maxEntries.servers).filter(isServerName)
        : [],
    };
  }

  /** Hands in a leave, which may turn down an invite or take back a knock. */
  async sendLeave(server: string, leave: SignedEvent, request?: MembershipRequest): Promise<void> {
    const { roomId, eventId, event } = leave;
    const rest = { ...base(server, request), method: 'PUT', body: event, maxBody: maxBody.event } as const;
    await withFallback(
      () =>
        this.#client.request({
          ...rest,
          path: federationPath`/_proto/federation/v2/send_leave/${roomId}/${eventId}`,
        }),
      () =>
        this.#client.requestPair({
          ...rest,
          path: federationPath`/_proto/federation/v1/send_leave/${roomId}/${eventId}`,
        }),
    );
  }

  /** Hands in a knock. @returns events that describe the room */
  async sendKnock(
    server: string,
    knock: SignedEvent,
    request?: MembershipRequest,
  ): Promise<readonly JsonValue[]> {
    const { roomId, eventId, event } = knock;
    const answer = await this.#client.request({
      ...base(server, request),
      method: 'PUT',
      path: federationPath`/_proto/federation/v1/send_knock/${roomId}/${eventId}`,
      body: event,
      maxBody: maxBody.event,
    });
    return new ResponseShape(server, answer).list('knock_room_state', maxEntries.strippedState);
  }

  /** Has an invite signed by the server of who is invited. @returns the event with its signatures */
  async invite(server: string, invite: OutgoingInvite, request?: MembershipRequest): Promise<JsonObject> {
    const { roomId, eventId, event, roomVersion, inviteRoomState } = invite;
    const rest = { ...base(server, request), method: 'PUT', maxBody: maxBody.event } as const;
    const isOld = roomVersion === '1' || roomVersion === '2';
    const answer = await withFallback(
      () =>
        this.#client.request({
          ...rest,
          path: federationPath`/_proto/federation/v2/invite/${roomId}/${eventId}`,
          body: { room_version: roomVersion, event, invite_room_state: inviteRoomState },
        }),
      () =>
        this.#client.requestPair({
          ...rest,
          path: federationPath`/_proto/federation/v1/invite/${roomId}/${eventId}`,
          body: { ...event, unsigned: { invite_room_state: inviteRoomState } },
        }),
      (error) => isOld && (error.status === 404 || error.status === 400),
    );
    return new ResponseShape(server, answer).object('event');
  }

  /** Asks a server whose user has invited an address to invite the user who has it. */
  async exchangeThirdPartyInvite(
    server: string,
    roomId: string,
    event: JsonObject,
    request?: MembershipRequest,
  ): Promise<void> {
    await this.#client.request({
      ...base(server, request),
      method: 'PUT',
      path: federationPath`/_proto/federation/v1/exchange_third_party_invite/${roomId}`,
      body: event,
      maxBody: maxBody.event,
    });
  }

  /** How complex a room is; `undefined` when the server does not say. */
  async complexity(server: string, roomId: string, request?: MembershipRequest): Promise<number | undefined> {
    const { v1 } = await this.#client.request({
      ...base(server, request),
      method: 'GET',
      path: federationPath`/_proto/federation/unstable/rooms/${roomId}/complexity`,
      maxBody: maxBody.event,
    });
    const value = numberOf(v1);
    return value === undefined || value < 0 ? undefined : value;
  }
}

/** There are usually other servers to ask, so nothing is repeated. */
function base(destination: string, { signal, timeout, ignoreBackoff }: MembershipRequest = {}) {
  return {
    destination,
    retry: 'none',
    ...(signal && { signal }),
    ...(timeout !== undefined && { timeout }),
    ...(ignoreBackoff && { ignoreBackoff }),
  } as const satisfies Partial<FederationRequest>;
}

/** Asks once more in the older way where the server does not know the newer one. */
async function withFallback(
  ask: () => Promise<JsonObject>,
  askFallback: () => Promise<JsonObject>,
  needsFallback: (error: RemoteError) => boolean = () => false,
): Promise<JsonObject> {
  try {
    return await ask();
  } catch (error) {
    if (!(error instanceof RemoteError) || !(error.isUnrecognized || needsFallback(error))) throw error;
    return askFallback();
  }
}
