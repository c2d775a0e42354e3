import { MatrixError } from '../../protocol/index.ts';
import type { PasswordPolicyOptions } from '../account-options.ts';

/** Maximum characters of a password, so that hashing cannot be abused to cause load. */
export const maxPasswordLength = 512;

/** Returns the requirements of the policy in words; empty when there are none. */
export function passwordRules(policy: PasswordPolicyOptions): string[] {
  if (!policy.enabled) return [];
  const { minimum_length: length } = policy;
  return [
    ...(length > 0 ? [`at least ${length} characters`] : []),
    ...(policy.require_lowercase ? ['a lower case letter'] : []),
    ...(policy.require_uppercase ? ['an upper case letter'] : []),
    ...(policy.require_digit ? ['a digit'] : []),
    ...(policy.require_symbol ? ['a symbol'] : []),
  ];
}

const policyError = (errcode: string, message: string) => new MatrixError(400, errcode, message);

/** Checks that a password is neither empty nor too long. @throws MatrixError M_INVALID_PARAM */
export function checkPasswordLength(password: string): void {
  if (password === '' || password.length > maxPasswordLength) {
    throw policyError('M_INVALID_PARAM', `A password has between 1 and ${maxPasswordLength} characters`);
  }
}

/**
 * Checks a new password against the operator's policy.
 * @throws MatrixError M_INVALID_PARAM for an empty or too long password, M_PASSWORD_TOO_SHORT,
 * M_PASSWORD_NO_DIGIT, M_PASSWORD_NO_SYMBOL, M_PASSWORD_NO_LOWERCASE, M_PASSWORD_NO_UPPERCASE
 */
export function checkPasswordPolicy(password: string, policy: PasswordPolicyOptions): void {
  checkPasswordLength(password);
  if (!policy.enabled) return;
  if ([...password].length < policy.minimum_length) {
    throw policyError(
      'M_PASSWORD_TOO_SHORT',
      `Passwords must have at least ${policy.minimum_length} characters`,
    );
  }
  const requirements = [
    [policy.require_digit, /\p{Nd}/u, 'M_PASSWORD_NO_DIGIT', 'a digit'],
    [policy.require_symbol, /[^\p{L}\p{Nd}]/u, 'M_PASSWORD_NO_SYMBOL', 'a symbol'],
    [policy.require_uppercase, /\p{Lu}/u, 'M_PASSWORD_NO_UPPERCASE', 'an upper case letter'],
    [policy.require_lowercase, /\p{Ll}/u, 'M_PASSWORD_NO_LOWERCASE', 'a lower case letter'],
  ] as const;
  for (const [isRequired, pattern, errcode, what] of requirements) {
    if (isRequired && !pattern.test(password)) throw policyError(errcode, `Passwords must contain ${what}`);
  }
}
