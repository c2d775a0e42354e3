import type { AccountOptions } from '../account-options.ts';
import type { Flows } from '../interactive-auth/stage.ts';

/** The options that decide which stages a registration has. */
export type RegistrationFlowOptions = Pick<
  AccountOptions,
  | 'enable_registration_without_verification'
  | 'registrations_require_3pid'
  | 'disable_msisdn_registration'
  | 'registration_requires_token'
  | 'enable_registration_captcha'
  | 'user_consent'
>;

/** The stage that proves a mail address. */
const email = 'm.login.email.identity';

/** The stage that proves a phone number. */
const msisdn = 'm.login.msisdn';

/**
 * Returns the flows of a registration. The token and the CAPTCHA come first, so that only users who have passed them
 * cause mails and text messages; the terms come last.
 * @param isOffered whether the server can carry out a stage
 * @returns no flows in two cases: the options require no verification and do not allow registration without
 * verification, or the server cannot carry out a required stage
 */
export function registrationFlows(
  options: RegistrationFlowOptions,
  isOffered: (stage: string) => boolean,
): Flows {
  const first = [
    ...(options.registration_requires_token ? ['m.login.registration_token'] : []),
    ...(options.enable_registration_captcha ? ['m.login.recaptcha'] : []),
  ];
  const last = options.user_consent?.require_at_registration ? ['m.login.terms'] : [];
  const required = requiredAddresses(options);
  const isVerified = first.length > 0 || required.length > 0;
  if (!isVerified && !options.enable_registration_without_verification) return [];
  if (![...first, ...required, ...last].every(isOffered)) return [];
  return addressFlows(options, required, isOffered).map((stages) => [...first, ...stages, ...last]);
}

/** Returns the stages of the addresses that every new user must prove. */
function requiredAddresses(options: RegistrationFlowOptions): string[] {
  const { registrations_require_3pid: media, disable_msisdn_registration: withoutPhones } = options;
  const stages = media.map((medium) => (medium === 'email' ? email : msisdn));
  return stages.filter((stage) => stage !== msisdn || !withoutPhones);
}

/** Returns the possible flows of address stages: those that contain all `required` stages. A client chooses one flow. */
function addressFlows(
  { disable_msisdn_registration: withoutPhones }: RegistrationFlowOptions,
  required: readonly string[],
  isOffered: (stage: string) => boolean,
): Flows {
  const [withMail, withPhone] = [isOffered(email), isOffered(msisdn) && !withoutPhones];
  const candidates = [
    // Without the dummy stage, a request that completes the CAPTCHA would complete this flow and skip the addresses.
    ['m.login.dummy'],
    ...(withMail ? [[email]] : []),
    ...(withPhone ? [[msisdn]] : []),
    ...(withMail && withPhone ? [[msisdn, email]] : []),
  ];
  return candidates.filter((stages) => required.every((stage) => stages.includes(stage)));
}
