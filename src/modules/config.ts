import { freeObject, list, object, option, section, string } from '../kernel/config/index.ts';
import { foreignModuleRemark } from './foreign-modules.ts';

/** Third-party code that extends the server. */
export const modulesSection = section({
  title: 'Modules',
  options: {
    modules: option(
      list(
        object({
          module: option(string({ minLength: 1 }), {
            description:
              'The JavaScript or TypeScript file of the module (relative to the configuration file when it begins with `./` or `../`), or the name of a package that is installed beside Hearth.',
            required: true,
          }),
          config: option(freeObject(), {
            description: 'The configuration that is passed to the module.',
            default: {},
            secret: true,
          }),
        }),
      ),
      { description: 'Modules to load. The server does not start when one cannot be loaded.', default: [] },
    ),
  },
  rules: [
    ({ modules }, view) => {
      for (const [index, { module }] of modules.entries()) {
        const remark = foreignModuleRemark(module);
        if (remark !== undefined) view.notice(`modules[${index}].module`, remark);
      }
    },
  ],
});
