import { Type } from 'typebox';
import { type Reply, type Route, redirect, route } from '../../kernel/http/index.ts';
import type { Pages } from '../../kernel/pages/index.ts';
import { forbidden, MatrixError } from '../../protocol/index.ts';
import type { AccountOptions } from '../account-options.ts';
import { Challenge, type ChallengeBody } from '../interactive-auth/challenge.ts';
import type { PasswordChange } from '../passwords/password-change.ts';
import { maxPasswordLength, passwordRules } from '../passwords/password-policy.ts';
import { textFields } from './fallback-routes.ts';
import { requireSameOrigin } from './same-origin.ts';
import type { StagePages } from './stage-pages.ts';

export interface PasswordResetPageDeps {
  readonly passwordChange: PasswordChange;
  readonly stagePages: StagePages;
  readonly pages: Pages;
}

type Options = Pick<AccountOptions, 'server_name' | 'password_config'>;

const path = '/_server/client/password_reset';

const mailStage = 'm.login.email.identity';

/** Whether users who are not logged in can set a new password by a mail to their address. */
const canResetByMail = (passwordChange: PasswordChange): boolean =>
  passwordChange.isPossible && passwordChange.resetFlows().some((stages) => stages.includes(mailStage));

/** Returns the path that login pages link to; `undefined` on a server that cannot send the mail. */
export const passwordResetPageOf = (passwordChange: PasswordChange): string | undefined =>
  canResetByMail(passwordChange) ? '/_synapse/client/password_reset' : undefined;

/**
 * The page on which users set a new password when their client offers no form for it. The steps are the same as in a
 * client: users enter their mail address and the new password, and open the link in the mail.
 */
export function passwordResetRoutes(deps: PasswordResetPageDeps, options: Options): Route[] {
  const { passwordChange, stagePages, pages } = deps;
  const contract = { auth: 'none', errors: 'page' } as const;
  const checkOffered = () => {
    if (!canResetByMail(passwordChange)) throw forbidden('This server sends no mails to reset a password');
  };
  const show = (values: Readonly<Record<string, unknown>>, status = 200) => {
    const rules = passwordRules(options.password_config.policy);
    const pageValues = { server_name: options.server_name, password_rules: rules, ...values };
    return pages.page('password_reset_form.html', pageValues, { status });
  };
  /** @param target the URL to which the form on the stage's page is sent, relative to that page */
  const stageOf = (session: string, ip: string, target = 'continue') => ({
    type: mailStage,
    session,
    ip,
    url: target,
  });
  return [
    route({ ...contract, method: 'GET', path }, () => {
      checkOffered();
      return show({});
    }),
    route(
      {
        ...contract,
        method: 'POST',
        path,
        bodyMode: 'form',
        body: Type.Object({
          email: Type.String({ maxLength: 500 }),
          password: Type.String({ maxLength: maxPasswordLength }),
          password_again: Type.String({ maxLength: maxPasswordLength }),
        }),
      },
      async ({ body, headers, ip }) => {
        requireSameOrigin(headers);
        checkOffered();
        const { email, password, password_again: again } = body;
        if (password !== again) return show({ email, error: 'The passwords are not the same' }, 400);
        try {
          passwordChange.check(password);
        } catch (error) {
          if (!(error instanceof MatrixError)) throw error;
          return show({ email, error: error.message }, error.status);
        }
        const { session } = await startReset(passwordChange, password, ip);
        const stage = stageOf(session, ip, 'password_reset/continue');
        const sent = await stagePages.submit(stage, { email: email.trim() });
        return sent ?? redirect(continuation(session, 'password_reset/'), 303);
      },
    ),
    route(
      {
        ...contract,
        method: 'GET',
        path: `${path}/continue`,
        query: Type.Object({ session: Type.String({ maxLength: 255 }) }),
      },
      async ({ query: { session }, ip }): Promise<Reply> => {
        const challenge = await completeReset(passwordChange, session, ip);
        if (challenge !== undefined) return stagePages.show(stageOf(session, ip));
        return pages.page('password_reset_done.html', { server_name: options.server_name });
      },
    ),
    route(
      {
        ...contract,
        method: 'POST',
        path: `${path}/continue`,
        bodyMode: 'form',
        body: Type.Object({ session: Type.String({ maxLength: 255 }) }),
      },
      async ({ body, ip }) => {
        const page = await stagePages.submit(stageOf(body.session, ip), textFields(body));
        return page ?? redirect(continuation(body.session), 303);
      },
    ),
  ];
}

/**
 * Returns the relative URL of the page that completes a reset.
 * @param folder `password_reset/` when the page that redirects is outside of this folder
 */
const continuation = (session: string, folder = '') =>
  `${folder}continue?session=${encodeURIComponent(session)}`;

/** Starts a reset. Its session contains the new password. */
async function startReset(
  passwordChange: PasswordChange,
  password: string,
  ip: string,
): Promise<ChallengeBody> {
  try {
    await passwordChange.resetByAddress({ body: { new_password: password, logout_devices: true }, ip });
  } catch (error) {
    if (error instanceof Challenge) return error.body;
    throw error;
  }
  throw new Error('A password was set without a proof of the address');
}

/** Sets the new password of a session if its mail address is validated. @returns the challenge if it is not */
async function completeReset(
  passwordChange: PasswordChange,
  session: string,
  ip: string,
): Promise<ChallengeBody | undefined> {
  try {
    await passwordChange.resetByAddress({ body: { auth: { session } }, ip });
    return undefined;
  } catch (error) {
    if (error instanceof Challenge && !error.isFailure) return error.body;
    throw error;
  }
}
