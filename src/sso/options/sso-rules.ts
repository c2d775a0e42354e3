import type { Static } from 'typebox';
import type { Rule } from '../../kernel/config/index.ts';
import { JwtKeyProblem, jwtKey } from '../jwt/jwt-key.ts';
import type { casOption } from './cas.ts';
import type { jwtOption } from './jwt.ts';
import type { saml2Option } from './saml2.ts';

interface Values {
  readonly saml2_config: Static<typeof saml2Option>;
  readonly cas_config: Static<typeof casOption>;
  readonly jwt_config: Static<typeof jwtOption>;
}

const saml2: Rule<Values> = ({ saml2_config: saml2 }, view) => {
  if (saml2?.enabled && saml2.sp_config === null && saml2.config_path === null) {
    view.warn('saml2_config', 'turns nothing on: it needs sp_config or config_path');
  }
};

const cas: Rule<Values> = ({ cas_config: cas }, view) => {
  if (!cas.enabled) {
    if (cas.server_url !== null && !view.isGiven('cas_config.enabled'))
      view.warn('cas_config', 'turns nothing on: it needs enabled: true');
    return;
  }
  if (cas.server_url === null) view.error('cas_config.server_url', 'must be given when CAS is enabled');
  if (Object.keys(cas.required_attributes).length > 0 && cas.protocol_version !== 3) {
    view.error('cas_config.required_attributes', 'needs protocol_version: 3');
  }
};

const jwt: Rule<Values> = ({ jwt_config: jwt }, view) => {
  if (!jwt.enabled) return;
  for (const name of ['secret', 'algorithm'] as const) {
    if (jwt[name] === null)
      view.error(`jwt_config.${name}`, 'must be given when JSON web tokens are enabled');
  }
  if (jwt.secret === null || jwt.algorithm === null) return;
  try {
    jwtKey(jwt.algorithm, jwt.secret);
  } catch (error) {
    if (!(error instanceof JwtKeyProblem)) throw error;
    view.error(error.option, error.message);
  }
};

/** Rules for options of SAML2, CAS and JSON web tokens that depend on each other. */
export const ssoRules = [saml2, cas, jwt];
