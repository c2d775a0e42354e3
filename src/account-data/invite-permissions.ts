import type { AccountData } from './account-data.ts';
import type { IgnoredUsers } from './ignored-users.ts';
import { type InviteDecision, type InviteRules, readInviteRules } from './invite-rules.ts';
import { ParsedAccountData } from './parsed-account-data.ts';

/**
 * The types under which clients keep a permission config: that of the specification, and those of the proposals that
 * clients used before it (MSC4380) or use beside it (MSC4155).
 */
const types = [
  'm.invite_permission_config',
  'org.matrix.msc4380.invite_permission_config',
  'org.matrix.msc4155.invite_permission_config',
] as const;

/** By whom users may be invited. Source: client-server API, "Invite permission" and "Ignoring Users"; MSC4155. */
export class InvitePermissions {
  readonly #ignored: IgnoredUsers;
  readonly #isServer: (inviter: string) => boolean;
  readonly #configs: readonly ParsedAccountData<InviteRules>[];

  /** @param isServer whether an inviter is the server itself, from which users take every invite */
  constructor(
    accountData: AccountData,
    ignored: IgnoredUsers,
    isServer: (inviter: string) => boolean = () => false,
  ) {
    this.#ignored = ignored;
    this.#isServer = isServer;
    this.#configs = types.map((type) => new ParsedAccountData(accountData, type, readInviteRules));
  }

  /** What becomes of an invite of a local user. The first config that has something to say of the inviter decides. */
  async decide(userId: string, inviter: string): Promise<InviteDecision> {
    if (this.#isServer(inviter)) return 'allow';
    for (const config of this.#configs) {
      const decision = (await config.of(userId))(inviter);
      if (decision === 'allow') break;
      if (decision) return decision;
    }
    return (await this.#ignored.of(userId)).has(inviter) ? 'ignore' : 'allow';
  }
}
