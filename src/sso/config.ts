import { type SectionType, section } from '../kernel/config/index.ts';
import { casOption } from './options/cas.ts';
import { jwtOption } from './options/jwt.ts';
import { mappingRule } from './options/mapping-modules.ts';
import { oidcProvidersOption } from './options/oidc.ts';
import { oidcRules } from './options/oidc-rules.ts';
import { saml2Option } from './options/saml2.ts';
import { ssoOption } from './options/sso.ts';
import { ssoRules } from './options/sso-rules.ts';

/** Options of single sign-on and of logins with JSON web tokens. */
export const ssoSection = section({
  title: 'Single sign-on and token login',
  options: {
    saml2_config: saml2Option,
    oidc_providers: oidcProvidersOption,
    cas_config: casOption,
    sso: ssoOption,
    jwt_config: jwtOption,
  },
  rules: [...ssoRules, ({ oidc_providers }, view) => oidcRules(oidc_providers, view), mappingRule],
});

export type SsoConfig = SectionType<typeof ssoSection>;
