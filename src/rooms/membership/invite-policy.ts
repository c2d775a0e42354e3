import { MatrixError } from '../../protocol/index.ts';

/** What users want to become of invites; declared here, supplied at composition. */
export interface InvitePolicy {
  /** `block`: it is refused. `ignore`: it is taken, and its user is not told. @param userId a local user */
  decide(userId: string, inviter: string): Promise<'allow' | 'ignore' | 'block'>;
}

/** Everybody may be invited by everybody. */
export const allowAllInvites: InvitePolicy = { decide: async () => 'allow' };

/**
 * Refuses an invite of a local user who does not want it.
 * Source: client-server API, "Invite permission".
 * @throws MatrixError 403 M_INVITE_BLOCKED
 */
export async function checkInvitePolicy(
  policy: InvitePolicy,
  userId: string,
  inviter: string,
): Promise<void> {
  if ((await policy.decide(userId, inviter)) === 'block') {
    throw new MatrixError(403, 'M_INVITE_BLOCKED', `${userId} does not take this invite`);
  }
}
