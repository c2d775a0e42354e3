import type { Stage, StageForm } from '../../accounts/index.ts';
import { isJsonObject, type JsonObject, MatrixError, missingParam } from '../../protocol/index.ts';
import type { Medium } from '../address.ts';
import type { ValidatedSessions } from './validated-sessions.ts';
import type { SessionCredentials } from './validation-sessions.ts';

/** Types of stages of interactive authentication, by the medium that they validate. */
export const stageTypes = { email: 'm.login.email.identity', msisdn: 'm.login.msisdn' } as const;

/**
 * Returns the stage that requires a proof that the user receives messages at an address. Its result is
 * `{medium, address, validated_at, purpose}`.
 * @param form the form that completes the stage in a browser
 * Source: client-server API, "Email-based (identity / homeserver)" and "Phone number/MSISDN-based".
 */
export function addressStage(medium: Medium, sessions: ValidatedSessions, form: StageForm): Stage {
  return {
    type: stageTypes[medium],
    form,
    async verify(auth) {
      const session = await sessions.find(medium, readCredentials(auth)).catch((error: unknown) => {
        throw error instanceof MatrixError && error.status === 400 ? notValidated() : error;
      });
      if (session === undefined) throw notValidated();
      const { address, validatedAt, purpose } = session;
      return { medium, address, validated_at: validatedAt, purpose };
    },
  };
}

/** @throws MatrixError M_MISSING_PARAM */
function readCredentials(auth: JsonObject): SessionCredentials {
  const given = auth['threepid_creds'] ?? auth['threepidCreds'];
  if (!isJsonObject(given)) throw missingParam("'threepid_creds' is missing");
  const { sid, client_secret: clientSecret } = given;
  if (typeof sid !== 'string' || typeof clientSecret !== 'string')
    throw missingParam("'sid' or 'client_secret' is missing");
  return { sid, clientSecret };
}

const notValidated = () => new MatrixError(401, 'M_UNAUTHORIZED', 'The address has not been validated');
