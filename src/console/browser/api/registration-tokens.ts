/** Registration tokens. Users need one to register if the server requires it. */
import { type Api, path } from './request.ts';

export interface RegistrationToken {
  readonly token: string;
  /** `null`: no limit. */
  readonly uses_allowed: number | null;
  /** Number of registrations with the token that are not complete. */
  readonly pending: number;
  readonly completed: number;
  /** Milliseconds since the epoch; `null`: never. */
  readonly expiry_time: number | null;
}

export interface TokenLimits {
  readonly uses_allowed: number | null;
  readonly expiry_time: number | null;
}

export async function listTokens(api: Api, signal: AbortSignal): Promise<readonly RegistrationToken[]> {
  const target = '/v1/registration_tokens';
  const answer = await api.admin<{ registration_tokens: RegistrationToken[] }>('GET', target, { signal });
  return answer.registration_tokens;
}

/** @param token absent: the server generates one */
export const createToken = (api: Api, limits: TokenLimits, token?: string): Promise<RegistrationToken> =>
  api.admin('POST', '/v1/registration_tokens/new', { body: { ...limits, ...(token && { token }) } });

/** @param limits only the limits that change */
export const changeToken = (
  api: Api,
  token: string,
  limits: Partial<TokenLimits>,
): Promise<RegistrationToken> => api.admin('PUT', path`/v1/registration_tokens/${token}`, { body: limits });

export const deleteToken = (api: Api, token: string): Promise<unknown> =>
  api.admin('DELETE', path`/v1/registration_tokens/${token}`);
