import { Reply } from '../kernel/http/index.ts';

/** Error codes of RFC 6749, RFC 7591, RFC 7009 and RFC 8628. */
export type OAuthErrorCode =
  | 'access_denied'
  | 'authorization_pending'
  | 'expired_token'
  | 'invalid_client'
  | 'invalid_client_metadata'
  | 'invalid_grant'
  | 'invalid_redirect_uri'
  | 'invalid_request'
  | 'invalid_scope'
  | 'slow_down'
  | 'unauthorized_client'
  | 'unsupported_grant_type'
  | 'unsupported_response_type';

/** An error in the form that OAuth 2.0 defines: `{"error": ..., "error_description": ...}`. */
export class OAuthError extends Error {
  readonly code: OAuthErrorCode;

  constructor(code: OAuthErrorCode, description: string) {
    super(description);
    this.code = code;
  }
}

/**
 * Headers that forbid caches to store a response, for endpoints that return tokens or codes and for their errors.
 * Source: RFC 6749, section 5.1.
 */
export const notCached = { 'Cache-Control': 'no-store', Pragma: 'no-cache' };

/** Runs the handler of an endpoint for clients, and answers its `OAuthError` with status 400, or 401 for an unknown client. */
export async function answerClient(work: () => Promise<Reply>): Promise<Reply> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof OAuthError)) throw error;
    const status = error.code === 'invalid_client' ? 401 : 400;
    return new Reply(status, { error: error.code, error_description: error.message }, notCached);
  }
}
