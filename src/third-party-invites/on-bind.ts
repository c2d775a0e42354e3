import type { Logger } from '../kernel/observability/index.ts';
import { forbidden, isJsonObject, type JsonValue, MatrixError, serverOfUser } from '../protocol/index.ts';
import type { ActionLimit } from '../rooms/index.ts';
import type { Redemption } from './redemption.ts';

export interface OnBindDeps {
  readonly redemption: Redemption;
  readonly serverName: string;
  /** Against whoever makes this server ask others again and again. */
  readonly limit: ActionLimit;
  readonly log: Logger;
}

/** Invites that one notice may bring. */
const maxInvites = 100;

/**
 * An identity server tells that a user of this server has an address that was invited to rooms. Anybody can say so:
 * what counts is what is signed.
 * Source: server-server API, `PUT /3pid/onbind`.
 */
export class OnBind {
  readonly #deps: OnBindDeps;

  constructor(deps: OnBindDeps) {
    this.#deps = deps;
  }

  /** What can not be done for one room does not keep the others waiting. @throws MatrixError M_FORBIDDEN, M_LIMIT_EXCEEDED */
  async bound(userId: string, invites: readonly JsonValue[]): Promise<void> {
    const { serverName, limit, log } = this.#deps;
    if (serverOfUser(userId) !== serverName) throw forbidden('This is no user of this server');
    for (const invite of invites.slice(0, maxInvites)) {
      limit.take(`bound ${userId}`);
      try {
        await this.#redeem(userId, invite);
      } catch (error) {
        log.info({ err: error, userId }, 'An invite of an address could not be redeemed');
      }
    }
  }

  async #redeem(userId: string, invite: JsonValue): Promise<void> {
    if (!isJsonObject(invite)) return;
    const { room_id: roomId, sender, signed } = invite;
    if (typeof roomId !== 'string' || typeof sender !== 'string' || !isJsonObject(signed)) return;
    if (signed['mxid'] !== userId)
      throw new MatrixError(403, 'M_FORBIDDEN', 'This is signed for another user');
    await this.#deps.redemption.invite(roomId, sender, signed);
  }
}
