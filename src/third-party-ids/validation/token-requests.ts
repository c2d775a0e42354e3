import type { Limiter, ThirdPartyIdentifiers } from '../../accounts/index.ts';
import { invalidParam, MatrixError } from '../../protocol/index.ts';
import { addressDenied, addressInUse, type Medium, readMailAddress, readPhoneNumber } from '../address.ts';
import type { ThirdPartyIdOptions } from '../options.ts';
import type { ValidationMails } from './mail-validation.ts';
import { readNextLink } from './next-link.ts';
import type { Purpose } from './purpose.ts';
import type { TextMessages } from './text-messages.ts';
import {
  isSessionIdOrSecret,
  type ValidationRequest,
  type ValidationSessions,
} from './validation-sessions.ts';

/** The fields that the bodies of all `requestToken` requests have. */
export interface TokenRequestBody {
  readonly client_secret: string;
  readonly send_attempt: number;
  readonly next_link?: string;
}

export interface TokenRequestsDeps {
  readonly sessions: ValidationSessions;
  readonly addresses: {
    findUser(medium: string, address: string): Promise<string | undefined>;
    isAllowed(medium: string, address: string): boolean;
    readonly checkUse?: ThirdPartyIdentifiers['checkUse'];
  };
  /** Absent on a server that sends no mail. */
  readonly mails: ValidationMails | undefined;
  /** Absent on a server without a service for phone numbers. */
  readonly phones: TextMessages | undefined;
  /** `rc_3pid_validation`, by the IP address of the client and by the address to validate. */
  readonly limiter: Limiter;
  readonly options: ThirdPartyIdOptions;
}

/** Handles requests for validation messages. Source: client-server API, the `requestToken` endpoints. */
export class TokenRequests {
  readonly #deps: TokenRequestsDeps;

  constructor(deps: TokenRequestsDeps) {
    this.#deps = deps;
  }

  /**
   * Sends a validation mail, at most one for each send attempt.
   * @returns the session id
   * @throws MatrixError M_THREEPID_MEDIUM_NOT_SUPPORTED, M_INVALID_PARAM, M_THREEPID_DENIED, M_LIMIT_EXCEEDED;
   * M_THREEPID_IN_USE and M_THREEPID_NOT_FOUND unless `request_token_inhibit_3pid_errors` is on; errors of modules that
   * refuse the address
   */
  async email(purpose: Purpose, body: TokenRequestBody & { email: string }, ip: string): Promise<string> {
    const { mails, sessions } = this.#deps;
    if (mails === undefined) throw unsupported('This server sends no mail');
    const request = this.#read(purpose, 'email', readMailAddress(body.email), body);
    const canBeValidated = await this.#admit(request, ip);
    return sessions.begin(
      request,
      async () => undefined,
      (writer, sid, token, expiresAt) =>
        mails.schedule(writer, { ...request, to: request.address, canBeValidated, sid, token, expiresAt }),
    );
  }

  /**
   * Requests a text message with a token, at most one for each send attempt.
   * @returns the session id
   * @throws the errors of `email`, and errors of the service for phone numbers unless
   * `request_token_inhibit_3pid_errors` is on
   */
  async msisdn(
    purpose: Purpose,
    body: TokenRequestBody & { country: string; phone_number: string },
    ip: string,
  ): Promise<string> {
    const { phones, sessions } = this.#deps;
    if (phones === undefined) throw unsupported('This server does not validate phone numbers');
    const number = await readPhoneNumber(body.country, body.phone_number);
    if (number === undefined) throw invalidParam('This is not a valid phone number');
    const request = this.#read(purpose, 'msisdn', number, body);
    const canBeValidated = await this.#admit(request, ip);
    const { country, phone_number, client_secret, send_attempt } = body;
    const message = { country, phone_number, client_secret, send_attempt };
    const isHidden = this.#deps.options.request_token_inhibit_3pid_errors;
    return sessions.begin(
      request,
      async () => (isHidden ? undefined : phones.delegate.sendToken(message, request.nextLink)),
      async (writer, sid) => {
        const next = { sid, message, nextLink: request.nextLink ?? null, isDecoy: !canBeValidated };
        if (isHidden) await phones.schedule(writer, next);
      },
    );
  }

  #read(purpose: Purpose, medium: Medium, address: string, body: TokenRequestBody): ValidationRequest {
    const { client_secret: clientSecret, send_attempt: sendAttempt } = body;
    if (!isSessionIdOrSecret(clientSecret)) throw invalidParam('client_secret is not valid');
    const nextLink = readNextLink(body.next_link, this.#deps.options.next_link_domain_whitelist);
    return { purpose, medium, address, clientSecret, sendAttempt, nextLink };
  }

  /**
   * Checks whether a token may be requested for an address, within the rate limits.
   * @returns whether the address can be validated: it must belong to no account, or for a password reset, to an account
   */
  async #admit({ purpose, medium, address }: ValidationRequest, ip: string): Promise<boolean> {
    const { addresses, limiter, options } = this.#deps;
    const isNew = purpose !== 'password_reset';
    if (isNew && !addresses.isAllowed(medium, address)) throw addressDenied();
    limiter.take(`client ${ip}`);
    limiter.take(`${medium} ${address}`);
    // This check comes after the rate limits, so that they also limit how often modules are called.
    if (isNew) await addresses.checkUse?.(medium, address, purpose === 'registration');
    const isAddressInUse = (await addresses.findUser(medium, address)) !== undefined;
    const canBeValidated = isAddressInUse === (purpose === 'password_reset');
    if (canBeValidated || options.request_token_inhibit_3pid_errors) return canBeValidated;
    if (isAddressInUse) throw addressInUse();
    throw new MatrixError(400, 'M_THREEPID_NOT_FOUND', 'No account has this address');
  }
}

const unsupported = (message: string) => new MatrixError(400, 'M_THREEPID_MEDIUM_NOT_SUPPORTED', message);
