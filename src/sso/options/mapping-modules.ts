import type { Static } from 'typebox';
import { isPythonClass, type RuleView } from '../../kernel/config/index.ts';
import { oidcProviderId, samlProviderId } from '../provider-ids.ts';
import type { oidcProvidersOption } from './oidc.ts';
import type { saml2Option } from './saml2.ts';

interface Values {
  readonly oidc_providers: Static<typeof oidcProvidersOption>;
  readonly saml2_config: Static<typeof saml2Option>;
}

/** A module that the configuration names, with the value of its `config`. */
export interface MappingModule {
  readonly module: string;
  readonly config: Readonly<Record<string, unknown>>;
}

/** An option `user_mapping_provider`. */
type MappingOption = Readonly<{ module: string | null; config: object }>;

/** Patterns of the names of the built-in mappings in configuration files of the reference server. */
const builtIn = {
  oidc: /^\w+(\.\w+)*\.handlers\.oidc(_handler)?\.JinjaOidcMappingProvider$/,
  saml: /^\w+(\.\w+)*\.handlers\.saml(_handler)?\.DefaultSamlMappingProvider$/,
};

/** Returns the modules of the options `user_mapping_provider`, by the id of the provider. */
export function mappingModules({ oidc_providers, saml2_config }: Values): Map<string, MappingModule> {
  const modules = new Map<string, MappingModule>();
  for (const { idp_id, user_mapping_provider } of oidc_providers) {
    add(modules, oidcProviderId(idp_id), builtIn.oidc, user_mapping_provider);
  }
  if (saml2_config !== null) {
    add(modules, samlProviderId, builtIn.saml, saml2_config.user_mapping_provider);
  }
  return modules;
}

/** Adds the module of an option, unless the option names the built-in mapping or no module. */
function add(
  found: Map<string, MappingModule>,
  provider: string,
  builtInName: RegExp,
  { module, config }: MappingOption,
): void {
  if (module !== null && !builtInName.test(module)) found.set(provider, { module, config: { ...config } });
}

/** Refuses modules that are Python classes. */
export function mappingRule(options: Values, view: RuleView): void {
  const paths = [
    ...options.oidc_providers.map(
      ({ idp_id }, index) => [oidcProviderId(idp_id), `oidc_providers[${index}]`] as const,
    ),
    [samlProviderId, 'saml2_config'] as const,
  ];
  const modules = mappingModules(options);
  for (const [provider, path] of paths) {
    const name = modules.get(provider)?.module;
    if (name === undefined || !isPythonClass(name)) continue;
    view.error(
      `${path}.user_mapping_provider.module`,
      `${name} is a program in Python, which Hearth cannot load. Delete it for the built-in mapping, or write a module in JavaScript, see docs/modules.md`,
    );
  }
}
