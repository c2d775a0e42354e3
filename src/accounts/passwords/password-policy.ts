import { MatrixError } from '../../protocol/index.ts';
import type { PasswordPolicyOptions } from '../account-options.ts';

/** Characters; beyond it hashing would be work for nothing. */
const longestPassword = 512;

const refuse = (errcode: string, message: string) => new MatrixError(400, errcode, message);

/**
 * Checks a new password against the operator's policy.
 * @throws MatrixError M_WEAK_PASSWORD or one of the codes that say what it lacks: M_PASSWORD_TOO_SHORT,
 * M_PASSWORD_NO_DIGIT, M_PASSWORD_NO_SYMBOL, M_PASSWORD_NO_LOWERCASE, M_PASSWORD_NO_UPPERCASE
 */
export function checkPasswordPolicy(password: string, policy: PasswordPolicyOptions): void {
  if (password === '' || password.length > longestPassword) {
    throw refuse('M_INVALID_PARAM', `A password has between 1 and ${longestPassword} characters`);
  }
  if (!policy.enabled) return;
  if ([...password].length < policy.minimum_length) {
    throw refuse('M_PASSWORD_TOO_SHORT', `Passwords must have at least ${policy.minimum_length} characters`);
  }
  const demands = [
    [policy.require_digit, /\p{Nd}/u, 'M_PASSWORD_NO_DIGIT', 'a digit'],
    [policy.require_symbol, /[^\p{L}\p{Nd}]/u, 'M_PASSWORD_NO_SYMBOL', 'a symbol'],
    [policy.require_uppercase, /\p{Lu}/u, 'M_PASSWORD_NO_UPPERCASE', 'an upper case letter'],
    [policy.require_lowercase, /\p{Ll}/u, 'M_PASSWORD_NO_LOWERCASE', 'a lower case letter'],
  ] as const;
  for (const [demanded, pattern, errcode, what] of demands) {
    if (demanded && !pattern.test(password)) throw refuse(errcode, `Passwords must contain ${what}`);
  }
}
