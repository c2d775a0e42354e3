import { type IdentityServers, readThirdPartyId, type ThirdPartyId } from '../identity-servers/index.ts';
import type { Logger } from '../kernel/observability/index.ts';
import {
  forbidden,
  type JsonObject,
  MatrixError,
  notFound,
  PowerLevels,
  type RoomEvent,
} from '../protocol/index.ts';
import type { RoomHead, RoomWriter } from '../room-engine/index.ts';
import type {
  ActionLimit,
  AddressInvite,
  LocalUsers,
  Memberships,
  RequestingUser,
  ThirdPartyInviting,
} from '../rooms/index.ts';
import { inviteDetails } from './invite-details.ts';
import type { Redemption } from './redemption.ts';

export interface ThirdPartyInvitesOptions {
  readonly enable_3pid_lookup: boolean;
  readonly block_non_admin_invites: boolean;
  /** The option `email.invite_client_location`. */
  readonly webClient: string | undefined;
}

export interface ThirdPartyInvitesDeps {
  readonly engine: RoomWriter;
  readonly memberships: Memberships;
  readonly identityServers: IdentityServers;
  readonly redemption: Redemption;
  readonly users: Pick<LocalUsers, 'isAdmin'>;
  readonly options: ThirdPartyInvitesOptions;
  /** The limit of the option `rc_third_party_invite`. */
  readonly limit: ActionLimit;
  readonly log: Logger;
  /** Checks an invite of an address that no user has; absent: there are no further rules. @throws MatrixError */
  readonly checkInvite?: CheckAddressInvite | undefined;
}

/** Checks an invite of an address that no user has. @throws MatrixError when the invite is refused */
export type CheckAddressInvite = (
  inviter: string,
  address: { readonly medium: string; readonly address: string },
  roomId: string,
) => Promise<void>;

/** Invites users by mail address or phone number. Source: client-server API, "Third-party invites". */
export class ThirdPartyInvites implements ThirdPartyInviting {
  readonly #deps: ThirdPartyInvitesDeps;

  constructor(deps: ThirdPartyInvitesDeps) {
    this.#deps = deps;
  }

  async invite(requester: RequestingUser, roomId: string, invite: AddressInvite): Promise<void> {
    const { engine, memberships, identityServers } = this.#deps;
    const address = readThirdPartyId(invite);
    await this.#checkMayInvite(requester);
    await this.#checkMayInviteTo(requester.userId, await engine.heads.get(roomId));
    this.#count(requester);
    const userId = await identityServers.lookUp(address);
    if (userId === undefined) await this.#inviteLater(requester.userId, roomId, address);
    else await memberships.invite(requester.userId, roomId, userId, { requester });
  }

  async prepare(requester: RequestingUser, invites: readonly AddressInvite[]) {
    const { identityServers } = this.#deps;
    const addresses = invites.map(readThirdPartyId);
    if (addresses.length > 0) await this.#checkMayInvite(requester);
    const userIds: string[] = [];
    const withoutOwner: ThirdPartyId[] = [];
    for (const address of addresses) {
      this.#count(requester);
      const userId = await identityServers.lookUp(address);
      if (userId === undefined) withoutOwner.push(address);
      else userIds.push(userId);
    }
    return {
      userIds: userIds.filter((userId) => userId !== requester.userId),
      inviteOthers: (roomId: string) => this.#inviteOthers(requester.userId, roomId, withoutOwner),
    };
  }

  redeem(userId: string, roomId: string, signed: JsonObject): Promise<void> {
    return this.#deps.redemption.byJoining(userId, roomId, signed);
  }

  /** Logs failed invites without throwing: the room exists, and its creator must receive its id. */
  async #inviteOthers(sender: string, roomId: string, addresses: readonly ThirdPartyId[]): Promise<void> {
    for (const address of addresses) {
      try {
        await this.#inviteLater(sender, roomId, address);
      } catch (error) {
        if (!(error instanceof MatrixError)) throw error;
        this.#deps.log.warn(
          { err: error, roomId, server: address.server },
          'Failed to invite a third-party address',
        );
      }
    }
  }

  /**
   * Stores an invite for an address that no user has bound. When a user binds the address later, the identity server
   * reports that user.
   */
  async #inviteLater(sender: string, roomId: string, address: ThirdPartyId): Promise<void> {
    const { engine, memberships, identityServers, options, checkInvite } = this.#deps;
    await checkInvite?.(sender, address, roomId);
    const head = await engine.heads.get(roomId);
    if (!head) throw notFound('Room not found');
    const profile = await memberships.profileContent(sender);
    const details = await inviteDetails(engine, head, { sender, profile, webClient: options.webClient });
    const { token, displayName, keys } = await identityServers.storeInvite(address, details);
    const listed = keys.map(({ publicKey, validityUrl }) => ({
      public_key: publicKey,
      ...(validityUrl === undefined ? undefined : { key_validity_url: validityUrl }),
    }));
    await engine.timeline.append(roomId, {
      type: 'm.room.third_party_invite',
      stateKey: token,
      sender,
      content: { ...listed[0], display_name: displayName, public_keys: listed },
    });
  }

  async #checkMayInvite({ userId }: RequestingUser): Promise<void> {
    const { options, users } = this.#deps;
    if (!options.enable_3pid_lookup) {
      throw forbidden('This server does not look up mail addresses and phone numbers');
    }
    if (options.block_non_admin_invites && !(await users.isAdmin(userId))) {
      throw forbidden('Invites have been disabled on this server');
    }
  }

  /** Checks the rules of the room before a request is sent to the identity server. */
  async #checkMayInviteTo(userId: string, head: RoomHead | undefined): Promise<void> {
    if (head?.membership(userId) !== 'join') throw forbidden('You are not in this room');
    const current = async (type: string): Promise<RoomEvent | undefined> => {
      const entry = head.entry(type, '');
      return entry && (await this.#deps.engine.events.get(entry.nid))?.event;
    };
    const levels = new PowerLevels(await current('m.room.create'), await current('m.room.power_levels'));
    if (!levels.reaches(userId, 'invite'))
      throw forbidden('You do not have permission to invite users to this room');
  }

  #count(requester: RequestingUser): void {
    if (!requester.isUnlimited) this.#deps.limit.take(requester.userId);
  }
}
