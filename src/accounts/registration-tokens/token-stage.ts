import { isJsonObject, MatrixError, missingParam } from '../../protocol/index.ts';
import type { Stage } from '../interactive-auth/stage.ts';
import type { Limiter } from '../limits.ts';
import type { RegistrationTokens } from './registration-tokens.ts';

/**
 * `m.login.registration_token`. Source: client-server API, "Token-authenticated registration".
 * @param tokens store in which the stage reserves a use of the token for the session
 * @param limiter limits attempts by client address, so that tokens cannot be guessed
 */
export function registrationTokenStage(tokens: RegistrationTokens, limiter: Limiter): Stage {
  return {
    type: 'm.login.registration_token',
    verify({ token }, { ip }) {
      if (token === undefined) throw missingParam("'token' is missing");
      if (typeof token !== 'string') throw new MatrixError(400, 'M_BAD_JSON', "'token' must be a string");
      limiter.take(ip);
      return { token };
    },
    form: {
      template: 'registration_token.html',
      submit: ({ token = '' }) => ({ auth: { token } }),
    },
    store: (writer, idHash, result) => tokens.reserveIn(writer, idHash, tokenIn(result) ?? ''),
  };
}

/** Returns the token in the stored result of the stage. */
export function tokenIn(result: unknown): string | undefined {
  const token = isJsonObject(result) ? result['token'] : undefined;
  return typeof token === 'string' ? token : undefined;
}
