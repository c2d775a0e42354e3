import { MatrixError } from '../../../protocol/index.ts';
import type { AuthenticationContext, Authenticator, Requester } from '../requester.ts';

/** Authenticates one kind of access token, for instance the tokens of sessions or of application services. */
export interface TokenKind {
  /**
   * @returns undefined for a token of another kind
   * @throws MatrixError for a token of this kind that is not accepted, as `Authenticator` does
   */
  authenticate(
    token: string,
    context: AuthenticationContext,
  ): Requester | undefined | Promise<Requester | undefined>;
}

/**
 * Accepts several kinds of access tokens, which are tried in the given order. A kind that rejects unknown tokens itself
 * must be the last. A token that no kind knows is rejected with 401 M_UNKNOWN_TOKEN.
 */
export function acceptTokens(kinds: readonly [...TokenKind[], Authenticator | TokenKind]): Authenticator {
  return {
    authenticate(token, context) {
      for (let index = 0; index < kinds.length; index++) {
        const found = kinds[index]!.authenticate(token, context);
        if (found instanceof Promise) return settle(found, kinds.slice(index + 1), token, context);
        if (found !== undefined) return found;
      }
      throw unknownToken();
    },
  };
}

async function settle(
  first: Promise<Requester | undefined>,
  others: readonly TokenKind[],
  token: string,
  context: AuthenticationContext,
): Promise<Requester> {
  let found = await first;
  for (const kind of others) found ??= await kind.authenticate(token, context);
  if (found === undefined) throw unknownToken();
  return found;
}

const unknownToken = () =>
  new MatrixError(401, 'M_UNKNOWN_TOKEN', 'Unknown access token', { soft_logout: false });
