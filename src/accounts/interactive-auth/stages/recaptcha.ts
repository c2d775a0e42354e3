import type { OutboundHttp } from '../../../kernel/outbound/index.ts';
import type { ContentSecurityPolicy } from '../../../kernel/pages/index.ts';
import { isJsonObject, MatrixError, parseJson, unknown } from '../../../protocol/index.ts';
import type { AccountOptions } from '../../account-options.ts';
import type { Stage } from '../stage.ts';

type Options = Pick<
  AccountOptions,
  'recaptcha_public_key' | 'recaptcha_private_key' | 'recaptcha_siteverify_api'
>;

/** Milliseconds until the CAPTCHA service must have answered. */
const timeout = 10_000;

/** Maximum bytes of the answer of the CAPTCHA service. */
const maxBody = 65_536;

const captchaError = (errcode: string, message: string) => new MatrixError(401, errcode, message);

/** Returns `m.login.recaptcha`; an empty list when a key is missing. Source: client-server API, "Google ReCaptcha". */
export function recaptchaStages(http: Pick<OutboundHttp, 'fetch'> | undefined, options: Options): Stage[] {
  const { recaptcha_public_key: publicKey, recaptcha_private_key: privateKey } = options;
  if (http === undefined || publicKey === null || privateKey === null) return [];
  const api = new URL(options.recaptcha_siteverify_api);
  const script = scriptOf(api);
  const stage: Stage = {
    type: 'm.login.recaptcha',
    params: () => ({ public_key: publicKey }),
    async verify({ response }, { ip }) {
      if (typeof response !== 'string' || response === '')
        throw captchaError('M_CAPTCHA_NEEDED', 'Solve the CAPTCHA');
      if (!(await isSolved(http, api, { secret: privateKey, response, remoteip: ip })))
        throw captchaError('M_CAPTCHA_INVALID', 'The CAPTCHA was not solved');
      return true;
    },
    form: {
      template: 'recaptcha.html',
      policy: captchaPolicy(script),
      values: () => ({ sitekey: publicKey, script_url: script.href }),
      submit: (fields) => ({ auth: { response: fields['g-recaptcha-response'] ?? '' } }),
    },
  };
  return [stage];
}

/**
 * Verifies a response at the CAPTCHA service.
 * @throws MatrixError 502 M_UNKNOWN when the service does not answer correctly, so that registration stays protected
 */
async function isSolved(
  http: Pick<OutboundHttp, 'fetch'>,
  api: URL,
  fields: Readonly<Record<string, string>>,
): Promise<boolean> {
  try {
    const { status, body } = await http.fetch(api, {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: new URLSearchParams(fields).toString(),
      timeout,
      maxBody,
    });
    if (status !== 200) throw new Error(`the CAPTCHA service responded ${status}`);
    const answer = parseJson(body.toString('utf8'));
    return isJsonObject(answer) && answer['success'] === true;
  } catch (error) {
    throw Object.assign(unknown('The CAPTCHA service does not answer correctly', 502), { cause: error });
  }
}

/** Returns the URL of the script that shows the CAPTCHA: `…/api.js` for a verification at `…/api/siteverify`. */
function scriptOf(api: URL): URL {
  return new URL(api.pathname.endsWith('/api/siteverify') ? '../api.js' : '/recaptcha/api.js', api);
}

/**
 * Returns a policy that lets the page load scripts and frames of the CAPTCHA service, and nothing else from other
 * hosts.
 */
function captchaPolicy({ hostname, origin }: URL): ContentSecurityPolicy {
  const isGoogle = /(^|\.)(recaptcha\.net|google\.com)$/.test(hostname);
  const anyPath = `${origin}/`;
  if (!isGoogle) return { 'script-src': anyPath, 'frame-src': anyPath, 'connect-src': anyPath };
  const service = `${origin}/recaptcha/`;
  return {
    'script-src': `${service} https://www.gstatic.com/recaptcha/ https://www.gstatic.cn/recaptcha/`,
    'frame-src': `${service} https://www.google.com/recaptcha/ https://recaptcha.google.com/recaptcha/`,
    'connect-src': service,
  };
}
