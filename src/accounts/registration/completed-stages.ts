import type { AnyWriter } from '../../kernel/database/index.ts';
import { isJsonObject, type UserId } from '../../protocol/index.ts';
import type { Consents } from '../consent/consents.ts';
import type { InteractiveAuthResult } from '../interactive-auth/interactive-auth.ts';
import type { RegistrationTokens } from '../registration-tokens/registration-tokens.ts';
import { tokenIn } from '../registration-tokens/token-stage.ts';
import { type ThirdPartyIdentifiers, validatedAddresses } from '../third-party-identifiers.ts';

export interface CompletedStagesDeps {
  readonly consents: Pick<Consents, 'recordIn'>;
  readonly registrationTokens: RegistrationTokens;
  readonly thirdPartyIds: Pick<ThirdPartyIdentifiers, 'bind'>;
}

/**
 * Stores the results of the completed stages of a registration (consent, registration token and addresses),
 * in the transaction that creates the account.
 * @throws MatrixError M_UNAUTHORIZED when the registration token is no longer valid; M_THREEPID_IN_USE,
 * M_THREEPID_DENIED
 */
export async function applyCompletedStages(
  writer: AnyWriter,
  { consents, registrationTokens, thirdPartyIds }: CompletedStagesDeps,
  { userId, authenticated }: { readonly userId: UserId; readonly authenticated: InteractiveAuthResult },
): Promise<void> {
  const { completed, idHash } = authenticated;
  const token = tokenIn(completed.get('m.login.registration_token'));
  if (token !== undefined) await registrationTokens.useIn(writer, idHash, token);
  const terms = completed.get('m.login.terms');
  const version = isJsonObject(terms) ? terms['version'] : undefined;
  if (typeof version === 'string') await consents.recordIn(writer, userId, version);
  for (const address of validatedAddresses(completed)) await thirdPartyIds.bind(writer, userId, address);
}
