import type { StageContext, StageForm } from '../../accounts/index.ts';
import { type Randomness, randomString } from '../../kernel/randomness.ts';
import { MatrixError } from '../../protocol/index.ts';
import type { Purpose } from './purpose.ts';
import type { TokenRequests } from './token-requests.ts';
import type { ValidatedSessions } from './validated-sessions.ts';
import type { SessionCredentials } from './validation-sessions.ts';

export interface StageFormsDeps {
  readonly requests: Pick<TokenRequests, 'email' | 'msisdn'>;
  readonly validated: Pick<ValidatedSessions, 'submitPhoneToken'>;
  readonly randomness: Randomness;
}

/** Characters of a client secret. The page keeps the secret for the user. */
const secretLength = 32;

/** A user who is not logged in either registers or resets the password. */
const purposeOf = ({ isRegistration }: StageContext): Purpose =>
  isRegistration ? 'registration' : 'password_reset';

/** The form for a mail address: sends the mail, then waits until the user has opened its link. */
export function mailForm({ requests, randomness }: StageFormsDeps): StageForm {
  return {
    template: 'email_stage.html',
    async submit(fields, context) {
      const known = credentialsIn(fields);
      if (known) return { auth: authOf(known) };
      const client_secret = randomString(randomness, secretLength);
      const { email = '' } = fields;
      const sid = await requests.email(
        purposeOf(context),
        { client_secret, email, send_attempt: 1 },
        context.ip,
      );
      return { values: { sid, client_secret, email } };
    },
  };
}

/** The form for a phone number: has a text message sent, then asks the user for the code in it. */
export function phoneForm({ requests, validated, randomness }: StageFormsDeps): StageForm {
  return {
    template: 'msisdn_stage.html',
    async submit(fields, context) {
      const { country = '', phone_number = '', code = '' } = fields;
      const known = credentialsIn(fields);
      if (known) {
        if (!(await validated.submitPhoneToken(known, code.trim()))) throw wrongCode();
        return { auth: authOf(known) };
      }
      const client_secret = randomString(randomness, secretLength);
      const message = { client_secret, country: country.trim().toUpperCase(), phone_number, send_attempt: 1 };
      const sid = await requests.msisdn(purposeOf(context), message, context.ip);
      return { values: { sid, client_secret, phone_number } };
    },
  };
}

function credentialsIn(fields: Readonly<Record<string, string>>): SessionCredentials | undefined {
  const { sid, client_secret: clientSecret } = fields;
  return sid === undefined || clientSecret === undefined ? undefined : { sid, clientSecret };
}

const authOf = ({ sid, clientSecret }: SessionCredentials) => ({
  threepid_creds: { sid, client_secret: clientSecret },
});

const wrongCode = () => new MatrixError(401, 'M_UNAUTHORIZED', 'The code is wrong');
