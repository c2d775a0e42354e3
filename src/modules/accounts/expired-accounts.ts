import type { Authenticator } from '../../kernel/http/index.ts';
import { MatrixError } from '../../protocol/index.ts';
import { firstAnswer } from '../calls/call-all.ts';
import type { ModuleCalls } from '../calls/module-calls.ts';
import type { RegisteredCallbacks } from '../registered-callbacks.ts';

const isBoolean = (value: unknown) => typeof value === 'boolean';

/**
 * Returns an authenticator that refuses users whose accounts have expired, except for requests that locked users may send.
 * Users of application services do not expire. Returns `authenticator` itself where no module decides about expiry.
 */
export function refusingExpired(
  authenticator: Authenticator,
  callbacks: RegisteredCallbacks,
  calls: ModuleCalls,
): Authenticator {
  const checks = callbacks.with('accountRules', 'isExpired');
  if (checks.length === 0) return authenticator;
  return {
    async authenticate(token, context) {
      const requester = await authenticator.authenticate(token, context);
      if (context.allowLocked || requester.appservice !== undefined) return requester;
      const isExpired = await firstAnswer(
        calls,
        'isExpired',
        checks,
        (decide) => decide(requester.userId),
        isBoolean,
      );
      if (isExpired) throw new MatrixError(403, 'ORG_MATRIX_EXPIRED_ACCOUNT', 'Your account has expired');
      return requester;
    },
  };
}
