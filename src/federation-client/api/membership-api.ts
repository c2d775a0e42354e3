import { isServerName, type JsonObject, type JsonValue, numberOf } from '../../protocol/index.ts';
import { RemoteError } from '../requests/errors.ts';
import type { FederationClient } from '../requests/federation-client.ts';
import { type FederationRequest, federationPath } from '../requests/request.ts';
import type { ApiRequest } from './api-request.ts';
import { ResponseShape } from './response-shape.ts';

/** Maximum bytes of a response with one event and stripped state, and of a response with the whole state of a room. */
const maxBody = { event: 4 * 1024 * 1024, state: 64 * 1024 * 1024 } as const;

/** Maximum entries of lists in responses. */
const maxEntries = { strippedState: 1_000, state: 500_000, servers: 100_000 } as const;

/** Milliseconds for a response with the whole state of a large room. */
const stateTimeout = 180_000;

/** The membership that a local user requests in a room that this server is not in. */
export type HandshakeMembership = 'join' | 'leave' | 'knock';

/** An event that another server prepared for a local user to sign. */
export interface EventTemplate {
  /** `undefined` when the response does not contain it. */
  readonly roomVersion: string | undefined;
  readonly event: JsonObject;
}

/** The room as described in the response to `send_join`. */
export interface SendJoinResponse {
  /** The state before the join. */
  readonly state: readonly JsonValue[];
  /** The auth chain of the state. */
  readonly authChain: readonly JsonValue[];
  /** The join with the signatures of the resident server. */
  readonly event: JsonObject | undefined;
  /** Whether members are missing from the state. */
  readonly membersOmitted: boolean;
  /** The servers in the room; empty unless members are missing from the state. */
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
  /** Stripped state of the room. */
  readonly inviteRoomState: readonly JsonObject[];
}

export interface MembershipRequest extends ApiRequest {
  /** Whether the request is sent even while the server is in backoff. Set when a user waits for the response. */
  readonly ignoreBackoff?: boolean | undefined;
}

/**
 * Requests for joining, knocking on and leaving rooms that this server is not in, and for inviting remote
 * users. The returned events are unchecked.
 * Source: server-server API, "Joining Rooms", "Knocking upon a room", "Inviting to a room", "Leaving Rooms".
 */
export class MembershipApi {
  readonly #client: FederationClient;

  constructor(client: FederationClient) {
    this.#client = client;
  }

  /**
   * Fetches the event template for a join, knock or leave (`make_join`, `make_knock`, `make_leave`).
   * @param versions room versions that this server supports
   * @throws the errors of `FederationClient.request`, like all methods here
   */
  async fetchEventTemplate(
    server: string,
    membership: HandshakeMembership,
    { roomId, userId }: { readonly roomId: string; readonly userId: string },
    versions: readonly string[],
    request?: MembershipRequest,
  ): Promise<EventTemplate> {
    const answer = await this.#client.request({
      ...commonParts(server, request),
      method: 'GET',
      path: federationPath`/_proto/federation/v1/make_${membership}/${roomId}/${userId}`,
      ...(membership !== 'leave' && { query: { ver: versions } }),
      maxBody: maxBody.event,
    });
    const shape = new ResponseShape(server, answer);
    return { roomVersion: shape.optionalString('room_version'), event: shape.object('event') };
  }

  /** Sends a signed join. @param omitMembers allows the server to leave members out of the state */
  async sendJoin(
    server: string,
    join: SignedEvent,
    omitMembers: boolean,
    request?: MembershipRequest,
  ): Promise<SendJoinResponse> {
    const { roomId, eventId, event } = join;
    const common = {
      ...commonParts(server, request),
      timeout: request?.timeout ?? stateTimeout,
      method: 'PUT',
      body: event,
      maxBody: maxBody.state,
    } as const;
    const answer = await withFallback(
      () =>
        this.#client.request({
          ...common,
          path: federationPath`/_proto/federation/v2/send_join/${roomId}/${eventId}`,
          ...(omitMembers && { query: { omit_members: true } }),
        }),
      () =>
        this.#client.requestPair({
          ...common,
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

  /** Sends a signed leave. A leave may also reject an invite or withdraw a knock. */
  async sendLeave(server: string, leave: SignedEvent, request?: MembershipRequest): Promise<void> {
    const { roomId, eventId, event } = leave;
    const common = {
      ...commonParts(server, request),
      method: 'PUT',
      body: event,
      maxBody: maxBody.event,
    } as const;
    await withFallback(
      () =>
        this.#client.request({
          ...common,
          path: federationPath`/_proto/federation/v2/send_leave/${roomId}/${eventId}`,
        }),
      () =>
        this.#client.requestPair({
          ...common,
          path: federationPath`/_proto/federation/v1/send_leave/${roomId}/${eventId}`,
        }),
    );
  }

  /** Sends a signed knock. @returns stripped state of the room */
  async sendKnock(
    server: string,
    knock: SignedEvent,
    request?: MembershipRequest,
  ): Promise<readonly JsonValue[]> {
    const { roomId, eventId, event } = knock;
    const answer = await this.#client.request({
      ...commonParts(server, request),
      method: 'PUT',
      path: federationPath`/_proto/federation/v1/send_knock/${roomId}/${eventId}`,
      body: event,
      maxBody: maxBody.event,
    });
    return new ResponseShape(server, answer).list('knock_room_state', maxEntries.strippedState);
  }

  /**
   * Sends an invite to the server of the invited user. That server signs the invite.
   * @returns the event with its signatures
   */
  async invite(server: string, invite: OutgoingInvite, request?: MembershipRequest): Promise<JsonObject> {
    const { roomId, eventId, event, roomVersion, inviteRoomState } = invite;
    const common = { ...commonParts(server, request), method: 'PUT', maxBody: maxBody.event } as const;
    const isOldRoomVersion = roomVersion === '1' || roomVersion === '2';
    const answer = await withFallback(
      () =>
        this.#client.request({
          ...common,
          path: federationPath`/_proto/federation/v2/invite/${roomId}/${eventId}`,
          body: { room_version: roomVersion, event, invite_room_state: inviteRoomState },
        }),
      () =>
        this.#client.requestPair({
          ...common,
          path: federationPath`/_proto/federation/v1/invite/${roomId}/${eventId}`,
          body: { ...event, unsigned: { invite_room_state: inviteRoomState } },
        }),
      (error) => isOldRoomVersion && (error.status === 404 || error.status === 400),
    );
    return new ResponseShape(server, answer).object('event');
  }

  /** Asks the inviter's server to invite the owner of a third-party identifier. */
  async exchangeThirdPartyInvite(
    server: string,
    roomId: string,
    event: JsonObject,
    request?: MembershipRequest,
  ): Promise<void> {
    await this.#client.request({
      ...commonParts(server, request),
      method: 'PUT',
      path: federationPath`/_proto/federation/v1/exchange_third_party_invite/${roomId}`,
      body: event,
      maxBody: maxBody.event,
    });
  }

  /**
   * Fetches the complexity of a room, a measure of the work that the room causes; `undefined` when the response does
   * not contain it.
   */
  async complexity(server: string, roomId: string, request?: MembershipRequest): Promise<number | undefined> {
    const { v1 } = await this.#client.request({
      ...commonParts(server, request),
      method: 'GET',
      path: federationPath`/_proto/federation/unstable/rooms/${roomId}/complexity`,
      maxBody: maxBody.event,
    });
    const value = numberOf(v1);
    return value === undefined || value < 0 ? undefined : value;
  }
}

/**
 * Returns the common part of all requests. No request is retried, because most of them can be sent to another server
 * instead, and users wait for the others.
 */
function commonParts(destination: string, { signal, timeout, ignoreBackoff }: MembershipRequest = {}) {
  return {
    destination,
    retry: 'none',
    ...(signal && { signal }),
    ...(timeout !== undefined && { timeout }),
    ...(ignoreBackoff && { ignoreBackoff }),
  } as const satisfies Partial<FederationRequest>;
}

/**
 * Repeats a request at the v1 endpoint when the server does not have the v2 endpoint, or when `needsFallback` returns
 * true for the error.
 */
async function withFallback(
  request: () => Promise<JsonObject>,
  requestFallback: () => Promise<JsonObject>,
  needsFallback: (error: RemoteError) => boolean = () => false,
): Promise<JsonObject> {
  try {
    return await request();
  } catch (error) {
    if (!(error instanceof RemoteError) || !(error.isUnrecognized || needsFallback(error))) throw error;
    return requestFallback();
  }
}
