import { MatrixError } from '../../protocol/index.ts';

/** Users' settings for incoming invites; supplied at composition. */
export interface InvitePolicy {
  /**
   * `block`: the invite is refused. `ignore`: the invite is stored, but syncs and pushes do not show it to the user.
   * @param userId a local user
   */
  decide(userId: string, inviter: string): Promise<'allow' | 'ignore' | 'block'>;
}

/** Allows all invites. */
export const allowAllInvites: InvitePolicy = { decide: async () => 'allow' };

/**
 * Refuses an invite that the local user blocks.
 * Source: client-server API, "Invite permission".
 * @throws MatrixError 403 M_INVITE_BLOCKED
 */
export async function checkInvitePolicy(
  policy: InvitePolicy,
  userId: string,
  inviter: string,
): Promise<void> {
  if ((await policy.decide(userId, inviter)) === 'block') {
    throw new MatrixError(403, 'M_INVITE_BLOCKED', `${userId} does not accept this invite`);
  }
}
