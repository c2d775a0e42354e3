import type { Logger } from '../kernel/observability/index.ts';
import { forbidden, isJsonObject, type JsonValue, MatrixError, serverOfUser } from '../protocol/index.ts';
import type { ActionLimit } from '../rooms/index.ts';
import type { Redemption } from './redemption.ts';

export interface OnBindDeps {
  readonly redemption: Redemption;
  readonly serverName: string;
  /** Limits the requests to other servers that notifications can cause. */
  readonly limit: ActionLimit;
  readonly log: Logger;
}

/** Maximum number of invites of one notification that are redeemed; further invites are ignored. */
const maxInvites = 100;

/**
 * Handles the notification of an identity server that a local user has bound an address with pending invites.
 * Requests are not authenticated: only the signatures in the invites count.
 * Source: server-server API, `PUT /3pid/onbind`.
 */
export class OnBind {
  readonly #deps: OnBindDeps;

  constructor(deps: OnBindDeps) {
    this.#deps = deps;
  }

  /**
   * Redeems the invites. An invite that fails does not prevent the others.
   * @throws MatrixError M_FORBIDDEN, M_LIMIT_EXCEEDED
   */
  async bound(userId: string, invites: readonly JsonValue[]): Promise<void> {
    const { serverName, limit, log } = this.#deps;
    if (serverOfUser(userId) !== serverName) throw forbidden('The user does not belong to this server');
    for (const invite of invites.slice(0, maxInvites)) {
      limit.take(`bound ${userId}`);
      try {
        await this.#redeem(userId, invite);
      } catch (error) {
        log.info({ err: error, userId }, 'Failed to redeem a third-party invite');
      }
    }
  }

  async #redeem(userId: string, invite: JsonValue): Promise<void> {
    if (!isJsonObject(invite)) return;
    const { room_id: roomId, sender, signed } = invite;
    if (typeof roomId !== 'string' || typeof sender !== 'string' || !isJsonObject(signed)) return;
    if (signed['mxid'] !== userId)
      throw new MatrixError(403, 'M_FORBIDDEN', 'The invite is signed for another user');
    await this.#deps.redemption.invite(roomId, sender, signed);
  }
}
